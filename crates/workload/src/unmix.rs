//! The inverse of the mixing function of the runtime.

/// The inverse of [`runtime::mix64`].
pub(crate) const fn unmix64(mixed: u64) -> u64 {
    let mut z = mixed;
    z = z ^ (z >> 31) ^ (z >> 62);
    z = z.wrapping_mul(0x3196_42B2_D24D_8EC3);
    z = z ^ (z >> 27) ^ (z >> 54);
    z = z.wrapping_mul(0x96DE_1B17_3F11_9089);
    z = z ^ (z >> 30) ^ (z >> 60);
    z.wrapping_sub(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use runtime::{Rng, mix64};

    use super::*;

    #[test]
    fn unmixing_undoes_mixing() {
        let mut rng = Rng::new(1);
        for n in (0..1000).chain((0..10_000).map(|_| rng.next_u64())).chain([u64::MAX]) {
            assert_eq!(unmix64(mix64(n)), n);
        }
    }
}
