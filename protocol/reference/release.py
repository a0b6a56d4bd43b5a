"""Over which sites exact totals may be released: whole blocks, for the life of a data set (spec section 11.3). Pure.

A member is a dict of site, key and standing; a block of id, sites, ids and versions, the last two in the order of the sites.
"""

from codec import Refused
from suite import H


def known_by(member):
    """What a member is known by: its account, else its key."""
    return member["standing"].get("account") or member["key"]


def block_id(keys):
    """[REL-2]."""
    return H("cohort in a ledger", b"".join(sorted(keys)))


def least_sites(contributors, colluders):
    """[REL-3]."""
    return 1 if contributors <= 1 else contributors + max(colluders, 1)


def burned_by(members, threshold, colluders):
    """[REL-6]: so many promises show that a slot gives no total."""
    return max(members + colluders + 1 - threshold, 0)


def partition(members, lists):
    """[REL-1], [REL-2]: the blocks of a directory."""
    by_site, seen, blocks = {m["site"]: m for m in members}, set(), []
    for sites in lists:
        if not sites or sites != sorted(set(sites)):
            raise Refused("REL-1", "an empty block, or one that is not sorted")
        for site in sites:
            if site not in by_site or site in seen:
                raise Refused("REL-1", f"site {site} is not in the directory, or in two blocks", site)
            seen.add(site)
        called = block_id([known_by(by_site[s]) for s in sites])
        for site in sites:
            if by_site[site]["standing"]["block"] not in (None, called):
                raise Refused("REL-2", f"site {site} belongs to another block", site)
        versions = [by_site[s]["standing"]["version"] for s in sites]
        ids = [known_by(by_site[s]) for s in sites]
        blocks.append({"id": called, "sites": sites, "ids": ids, "versions": versions})
    ids = set()
    for member in members:
        if known_by(member) in ids:
            raise Refused("REL-1", f"site {member['site']} states another's account", member["site"])
        ids.add(known_by(member))
    for member in members:
        if member["site"] not in seen:
            raise Refused("REL-1", f"site {member['site']} is in no block", member["site"])
    return blocks


def whole_among(blocks, present):
    """All sites of the blocks of which nobody is missing."""
    return sorted(s for b in blocks if set(b["sites"]) <= set(present) for s in b["sites"])


def cut_among(blocks, sites):
    """Of these sites those whose block is not whole among them."""
    whole = whole_among(blocks, sites)
    return [s for s in sites if s not in whole]


def check_whole(blocks, sites):
    """[REL-4]."""
    for b in blocks:
        missing = [s for s in b["sites"] if s not in sites]
        if missing and len(missing) < len(b["sites"]):
            raise Refused("REL-4", f"a block without site {missing[0]}", missing[0])


def may_change(before, now, least):
    """[REL-7]; both map keys to versions."""
    for key, version in now.items():
        if version < before.get(key, 0):
            raise Refused("REL-7", "a version went back")
    changed = sum(before.get(key) != version for key, version in now.items())
    if 0 < changed < least:
        raise Refused("REL-7", "the rows of too few sites have changed")


def admit(own, before, blocks, cohort, drawn, least):
    """[REL-3] to [REL-5], [REL-7]; `own` and `before` map the keys of the data set's block to versions."""
    if len(own) < least:
        raise Refused("REL-3", "a block of too few sites")
    for sites in (cohort, drawn or []):
        check_whole(blocks, sites)
    if before is not None:
        if set(before) != set(own):
            raise Refused("REL-5", "another block than before")
        may_change(before, own, least)


def propose(members, known, size, least):
    """How an aggregator arranges a deck: the blocks, those who wait for others of their block, those who are too few."""
    by_site, ids, twice = {}, set(), []
    for m in sorted(members, key=lambda m: m["site"]):
        # Of two that state one account, one does not have it.
        if known_by(m) in ids:
            twice.append(m["site"])
        else:
            ids.add(known_by(m))
            by_site[m["site"]] = m
    blocks, kept = [], set()
    for b in known:
        if all(s in by_site and by_site[s]["standing"]["block"] in (None, b["id"]) for s in b["sites"]):
            kept |= set(b["sites"])
            blocks.append(b["sites"])
    rest = [m for _, m in sorted(by_site.items()) if m["site"] not in kept]
    fresh, incomplete = [m for m in rest if m["standing"]["block"] is None], twice
    for called in sorted({m["standing"]["block"] for m in rest} - {None}):
        block = [m for m in rest if m["standing"]["block"] == called]

        def is_whole(of):
            return block_id([known_by(m) for m in of]) == called

        # Whoever of a block lost its first round states none.
        if not is_whole(block) and is_whole(block + fresh):
            block, fresh = block + fresh, []
        sites = sorted(m["site"] for m in block)
        if is_whole(block):
            blocks.append(sites)
        else:
            incomplete += sites
    sites, smallest, too_few = [m["site"] for m in fresh], max(least, size, 1), []
    if len(sites) < smallest:
        too_few = sites
    else:
        count = 1 if size == 0 else len(sites) // smallest
        each, more = divmod(len(sites), count)
        for i in range(count):
            n = each + (i < more)
            blocks.append(sites[:n])
            sites = sites[n:]
    return {"blocks": sorted(blocks), "incomplete": sorted(incomplete), "too_few": too_few}
