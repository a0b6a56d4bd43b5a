//! Which vector instructions are used: the widest of this processor, unless a test asks for others.

use std::cell::Cell;

use fearless_simd::Level;

/// A kind of vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vectors {
    /// 128 bits.
    Narrow,
    /// AVX2.
    Avx2,
    /// AVX-512.
    Avx512,
}

impl Vectors {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Narrow, Self::Avx2, Self::Avx512];

    /// What `work` gives where questions are asked on this thread with these vectors; nothing where the processor has none. For tests.
    pub fn used<T>(self, work: impl FnOnce() -> T) -> Option<T> {
        let before = CHOSEN.replace(Some(self.level()?));
        let found = work();
        CHOSEN.set(before);
        Some(found)
    }

    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    pub(super) fn level(self) -> Option<Level> {
        let best = Level::new();
        match self {
            Self::Narrow => best.as_sse2().map(Level::Sse2),
            Self::Avx2 => best.as_avx2().map(Level::Avx2),
            Self::Avx512 => best.as_avx512().map(Level::Avx512),
        }
    }

    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    pub(super) fn level(self) -> Option<Level> {
        (self == Self::Narrow).then(Level::new)
    }
}

thread_local! {
    static CHOSEN: Cell<Option<Level>> = const { Cell::new(None) };
}

/// Those of the questions that this thread asks. It is read before work goes to other threads.
pub(super) fn level() -> Level {
    CHOSEN.get().unwrap_or_else(Level::new)
}
