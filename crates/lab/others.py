#!/usr/bin/env python3
"""Reads what COMPARE.md says of other systems off their packages: python3 crates/lab/others.py

Fetches the newest wheel of each with pip, and looks for the text that bears a sentence out. Prints a line for each; exit code 1 where a
text is not there any more or another version than the page's is the newest. Needs a network; no test runs it.
"""

import pathlib
import subprocess
import sys
import tempfile
import zipfile

# Package, version that the page names, and (what the page says, a file of the package, a text in it).
CLAIMS = [
    ("flwr", "1.42.0", [
        ("sums model updates by SecAgg+", "flwr/server/workflow/secure_aggregation/secaggplus_workflow.py", "class SecAggPlusWorkflow"),
        ("recovers dropped clients up to a threshold", "flwr/server/workflow/secure_aggregation/secaggplus_workflow.py", "reconstruction_threshold"),
    ]),
    ("nvflare", "2.9.0", [
        ("has mini-batch k-means", "nvflare/app_opt/sklearn/recipes/kmeans.py", "class KMeansFedAvgRecipe"),
        ("encrypts updates under CKKS", "nvflare/app_opt/he/model_encryptor.py", "class HEModelEncryptor"),
        ("attests trusted hardware", "nvflare/app_opt/confidential_computing/snp_authorizer.py", "class SNPAuthorizer"),
    ]),
    ("fedbiomed", "6.4.1", [
        ("masks by LOM unless told otherwise", "fedbiomed/researcher/secagg/_secure_aggregation.py", "SecureAggregationSchemes = SecureAggregationSchemes.LOM"),
        ("has Joye-Libert, too", "fedbiomed/common/constants.py", "JOYE_LIBERT"),
        ("masks analytics", "fedbiomed/common/utils/_fa_secagg_utils.py", "def flatten_fa_output"),
    ]),
    ("vantage6", "4.15.2", []),
]


def main():
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, version, claims in CLAIMS:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, name], check=True)
            wheel = next(pathlib.Path(folder).glob(f"{name}-*.whl"))
            newest = wheel.name.split("-")[1]
            print(f"{name} {newest}: {'as the page says' if newest == version else 'THE PAGE SAYS ' + version}")
            failed |= newest != version
            with zipfile.ZipFile(wheel) as files:
                for says, path, text in claims:
                    there = path in files.namelist() and text in files.read(path).decode()
                    print(f"  {says}: {'yes' if there else 'NOT FOUND'} ({path})")
                    failed |= not there
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
