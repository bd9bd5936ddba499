//! A checkpoint's bytes are read as they were written, or not at all.

use proptest::prelude::*;

use super::*;
use crate::engine::Limits;
use crate::model::policy::Policy;

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..99), count in 0_usize..3) {
        let slices = vec![bytes; count];
        let _ = Checkpoint::from_slices(&slices);
    }
}

#[test]
fn slices_out_of_place_are_refused() {
    let engine = Engine::new(Policy::default().into(), Limits::default());
    let slices: Vec<Vec<u8>> = engine.checkpoint(Arrival::default()).into_slices().collect();
    assert!(Checkpoint::from_slices(&slices).is_some());
    assert!(Checkpoint::from_slices(&[slices[0].clone(), slices[0].clone()]).is_none());
    assert!(Checkpoint::from_slices(&[slices[0][..slices[0].len() - 1].to_vec()]).is_none());
}
