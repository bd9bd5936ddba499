//! Where records lie, what is done, and what goes.

use super::*;
use crate::log::Part;

fn done(from: u64, to: u64) -> Noted {
    Noted::Done { from: Position(from), to: Position(to) }
}

fn delivered(position: u64) -> Noted {
    let exporter = "otlp".to_string();
    Noted::Delivered { position: Position(position), exporter, part: Part::Rest }
}

fn name(sequence: Sequence, first: u64) -> Name {
    Name { sequence, first: Position(first), marker: sequence }
}

/// Segments 1 (positions 1..=4) and 2 (5..=6), and 3, empty.
fn index() -> Index {
    let mut index = Index::default();
    for (sequence, first, last) in [(1, 1, 4), (2, 5, 6), (3, 7, 6)] {
        index.open(name(sequence, first));
        for position in first..=last {
            index.add(sequence, Position(position), (position * 10) as u32, 10);
        }
    }
    index
}

#[test]
fn marks_are_news_once() {
    let mut index = index();
    assert!(index.mark(&delivered(2)) && !index.mark(&delivered(2)));
    assert!(!index.mark(&delivered(9)) && !index.mark(&done(7, 9)));
    assert_eq!(index.delivered(Position(2)).len(), 1);
    assert!(index.mark(&done(2, 5)) && !index.mark(&done(2, 5)));
    assert_eq!(index.delivered(Position(2)), [Mark::Done]);
    assert!(!index.mark(&delivered(2)));
    assert_eq!((index.pending(), index.pending_bytes()), (2, 20));
    assert_eq!(index.find(Position(1)), Some((name(1, 1), 10)));
    assert_eq!(index.find(Position(6)), Some((name(2, 5), 60)));
    assert_eq!((index.find(Position(3)), index.find(Position(0))), (None, None));
    assert_eq!(index.next_after(Position(0)), Some(Position(1)));
    assert_eq!(index.next_after(Position(1)), Some(Position(6)));
    assert_eq!(index.next_after(Position(6)), None);
}

#[test]
fn what_goes_is_told_again() {
    let mut index = index();
    let marks = [delivered(4), done(1, 2), done(5, 6)];
    marks.iter().for_each(|mark| assert!(index.mark(mark)));
    index.spoke(2, &marks);
    assert!(index.given_up(3).is_empty(), "it is worth more where it is");
    index.grow(2, 1000);
    assert_eq!(index.given_up(3), [2]);
    assert_eq!(index.retell(2), [done(1, 2), delivered(4)]);
    index.close(2);
    assert!(index.mark(&done(3, 4)), "the holder is found without the segment between");
    assert_eq!(index.given_up(3), [1]);
    assert!(index.retell(1).is_empty());
    assert_eq!(index.pending(), 0);
}

#[test]
fn a_segment_without_records_hides_none() {
    let mut index = Index::default();
    index.open(name(1, 1));
    index.open(name(2, 1));
    index.add(2, Position(1), 0, 1);
    // Created in vain: records went on into the one before.
    index.open(name(3, 2));
    index.add(2, Position(2), 1, 1);
    index.close(1);
    assert_eq!(index.find(Position(1)), Some((name(2, 1), 0)));
    assert_eq!(index.find(Position(2)), Some((name(2, 1), 1)));
    assert_eq!(index.next_after(Position(1)), Some(Position(2)));
    assert!(index.mark(&delivered(2)) && index.mark(&done(1, 2)));
    assert_eq!(index.pending(), 0);
}

#[test]
fn what_stays_though_nobody_needs_it_keeps_its_marks() {
    let mut index = index();
    // Segment 2 is over, and worth more where it is: it tells of what is live in the first.
    let marks = [delivered(1), delivered(2), delivered(3), delivered(4)];
    marks.iter().for_each(|mark| assert!(index.mark(mark)));
    index.spoke(2, &marks);
    index.open(name(4, 7));
    assert!(index.mark(&done(5, 6)));
    index.spoke(3, &[done(5, 6)]);
    index.grow(3, 1000);
    assert_eq!(index.given_up(4), [3]);
    assert_eq!(index.retell(3), [done(5, 6)], "segment 2 is still there");
}
