//! Faults that are planted in what the simulation is made of, to see that it finds them. None is in
//! the product: a device that lies, or a step of the driver in the wrong order.

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The device answers a sync of a segment and keeps nothing.
    SkippedSync,
    /// Names of new files are never durable.
    NamesNotSynced,
    /// A checkpoint takes its name before its bytes are durable.
    CheckpointNotSynced,
    /// A checkpoint that was written is gone.
    LostCheckpoint,
    /// Its position is the log's head, whatever the engine has seen.
    StaleCheckpoint,
    /// The sender is answered before the record is written.
    AckBeforeAppend,
    /// A record is done before the backend has it.
    MarkBeforeSend,
    /// What leaves at once is all that is waited for.
    HeldSpansForgotten,
    /// A verdict is sent before it is logged.
    SentBeforeLogged,
    /// What was said after the checkpoint is not told to the next process.
    ClaimsIgnored,
    /// It is told twice, as if it had been said twice.
    ClaimsFoldedTwice,
    /// With a segment that nobody needs goes the one behind it.
    SegmentTooManyDeleted,
    /// A checkpoint holds what was said, and not what of it is still to be logged.
    UnsaidForgotten,
    /// Spans leave before the verdicts that they name are logged.
    SpansBeforeVerdicts,
    /// Half a write that failed, or that the last process left, is not taken back.
    TornTailNotCut,
}

impl Plant {
    pub const ALL: [Plant; 15] = [
        Plant::SkippedSync,
        Plant::NamesNotSynced,
        Plant::CheckpointNotSynced,
        Plant::LostCheckpoint,
        Plant::StaleCheckpoint,
        Plant::AckBeforeAppend,
        Plant::MarkBeforeSend,
        Plant::HeldSpansForgotten,
        Plant::SentBeforeLogged,
        Plant::ClaimsIgnored,
        Plant::ClaimsFoldedTwice,
        Plant::SegmentTooManyDeleted,
        Plant::UnsaidForgotten,
        Plant::SpansBeforeVerdicts,
        Plant::TornTailNotCut,
    ];
}
