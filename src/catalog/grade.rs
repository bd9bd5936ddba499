//! How bad a change of a contract is, and where it is (judgment.md §6).
//!
//! Promises: a change carries a pointer, a kind, a grade and digests of both values, never text;
//! the worst change gives the drift its grade; `unlocated` stands where only digests are known.

use crate::model::digest::Digest;
use crate::model::ids::Name;
use crate::model::record;
pub use crate::model::words::Grade;
use crate::model::words::vocabulary;

vocabulary!(
    /// What happened at a pointer. Of a value that both sides have: `…_changed`.
    Kind {
        ToolAdded = "tool_added", ToolRemoved = "tool_removed", ToolRenamed = "tool_renamed",
        TextChanged = "text_changed", AnnotationChanged = "annotation_changed",
        DefaultChanged = "default_changed", ExecutionChanged = "execution_changed",
        SchemaAdded = "schema_added", SchemaRemoved = "schema_removed",
        PropertyAdded = "property_added", PropertyRemoved = "property_removed",
        PropertyRenamed = "property_renamed",
        RequiredAdded = "required_added", RequiredRemoved = "required_removed",
        TypeChanged = "type_changed", EnumChanged = "enum_changed",
        ConstraintAdded = "constraint_added", ConstraintRemoved = "constraint_removed",
        ConstraintChanged = "constraint_changed",
        AlternativeAdded = "alternative_added", AlternativeRemoved = "alternative_removed",
        /// Other words for what is proved to be the same.
        Reworded = "reworded",
        /// The meaning of the change cannot be known here.
        Undecided = "undecided",
        /// Known by digests alone.
        MemberChanged = "member_changed",
    }
);

impl Kind {
    /// Whether the change is one of the value at the pointer and not of what is asked of it.
    pub(super) fn is_of_its_value(self) -> bool {
        !matches!(self, Kind::RequiredAdded | Kind::RequiredRemoved)
    }
}

/// One located change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// JSON pointer into the definition: the new one, or the old one for what is gone.
    pub pointer: String,
    /// What happened there.
    pub kind: Kind,
    /// How bad that is.
    pub grade: Grade,
    /// Digest of the old value, where there was one.
    pub old: Option<Digest>,
    /// Digest of the new value, where there is one.
    pub new: Option<Digest>,
}

/// Everything that changed between two definitions of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The worst grade among all changes, those left out included.
    pub grade: Grade,
    /// By pointer, then kind; at most [`Located::MOST`], the worst kept.
    pub changes: Vec<Change>,
    /// Changes beyond [`Located::MOST`].
    pub omitted: usize,
}

impl Located {
    /// How many changes are kept of one drift.
    pub const MOST: usize = 256;

    /// Sorts, drops repetitions and caps. `None` where nothing changed.
    pub fn of(mut changes: Vec<Change>) -> Option<Located> {
        let grade = worst(changes.iter().map(|change| change.grade))?;
        changes.sort();
        changes.dedup();
        let omitted = changes.len().saturating_sub(Located::MOST);
        if omitted > 0 {
            changes.sort_by_key(|change| std::cmp::Reverse(severity(change.grade)));
            changes.truncate(Located::MOST);
            changes.sort();
        }
        Some(Located { grade, changes, omitted })
    }

    /// The changes as records print them.
    pub fn records(&self) -> Vec<record::Change> {
        let record = |change: &Change| record::Change {
            pointer: Name::new(&change.pointer),
            kind: Name::new(change.kind.as_str()),
            grade: change.grade,
        };
        self.changes.iter().map(record).collect()
    }
}

/// The worst of some grades: `breaking`, then `unlocated` (it may be breaking), `semantic`,
/// `compatible`. `None` of none.
pub fn worst(grades: impl IntoIterator<Item = Grade>) -> Option<Grade> {
    grades.into_iter().max_by_key(|grade| severity(*grade))
}

fn severity(grade: Grade) -> u8 {
    match grade {
        Grade::Compatible => 0,
        Grade::Semantic => 1,
        Grade::Unlocated => 2,
        Grade::Breaking => 3,
    }
}
