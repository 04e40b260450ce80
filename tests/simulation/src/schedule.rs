//! The schedule of a simulation: events with their times, of a seed or of a row.

use fixtures::dice::Dice;
use serde::{Deserialize, Serialize};

/// Replicas of the webhook.
pub const REPLICAS: usize = 3;

/// Kinds that users define.
pub const KINDS: usize = 3;

/// Objects of each kind.
pub const OBJECTS: usize = 2;

/// The time in which events happen, in milliseconds. Before it, the replicas have started.
const EVENTFUL: std::ops::Range<u64> = 30_000..330_000;

/// An event, and the time since the beginning at which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Milliseconds since the beginning.
    pub at: u64,
    /// The action.
    pub action: Action,
}

/// An action of an author, a user, or an accident. Times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// An author defines a kind with a union, or changes the union that it has.
    DefineKind {
        /// The number of the kind.
        kind: usize,
        /// Members of its union.
        members: usize,
    },
    /// An author deletes the CRD of a kind.
    DeleteKind {
        /// The number of the kind.
        kind: usize,
    },
    /// An author installs this many further kinds at once, as a large package has them.
    InstallKinds {
        /// The number of kinds.
        kinds: usize,
    },
    /// A user writes an object with one member.
    WriteValid {
        /// The number of the kind.
        kind: usize,
        /// The number of the object.
        object: usize,
        /// The number of the member.
        member: usize,
    },
    /// A user writes an object with two members.
    WriteInvalid {
        /// The number of the kind.
        kind: usize,
        /// The number of the object.
        object: usize,
    },
    /// A user changes a label.
    Label {
        /// The number of the kind.
        kind: usize,
        /// The number of the object.
        object: usize,
    },
    /// A replica ends between two of its steps, and starts again.
    Crash {
        /// The number of the replica.
        replica: usize,
        /// Time until it starts again.
        down: u64,
    },
    /// A replica ends at one of its next writes, and starts again.
    CrashAtWrite {
        /// The number of the replica.
        replica: usize,
        /// Writes that it sends before.
        writes: usize,
        /// True if the write arrives.
        arrives: bool,
        /// Time until it starts again.
        down: u64,
    },
    /// A replica ends, and starts again as the next version.
    Upgrade {
        /// The number of the replica.
        replica: usize,
    },
    /// The clock of a replica jumps.
    Clock {
        /// The number of the replica.
        replica: usize,
        /// Seconds by which it is ahead from now on.
        ahead: i64,
    },
    /// The requests of a replica fail.
    Network {
        /// The number of the replica.
        replica: usize,
        /// How.
        fault: NetworkFault,
        /// Requests of a hundred that fail.
        percent: usize,
        /// For how long.
        lasts: u64,
    },
    /// No request is answered.
    Outage {
        /// For how long.
        lasts: u64,
    },
    /// Watches are behind.
    Lag {
        /// By how much.
        behind: u64,
        /// For how long.
        lasts: u64,
    },
    /// The API server forgets its history.
    Compact,
    /// Somebody saves what is stored.
    Save,
    /// Somebody restores what was saved last.
    Restore {
        /// True if the watches from before stay open and have no events any more.
        hangs: bool,
    },
    /// Somebody changes what replicas keep.
    Tamper(Tampering),
}

/// A fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NetworkFault {
    /// It is lost.
    Lost,
    /// It arrives, and its answer is lost.
    AnswerLost,
    /// Its answer ends in the middle.
    AnswerCut,
    /// Its answer comes after some seconds.
    Late,
    /// It is answered with 429.
    TooMany,
    /// It is answered with 500.
    Broken,
}

/// A change of what replicas keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Tampering {
    /// All entries of both configurations are removed.
    EmptyConfigurations,
    /// The configuration for mutation is deleted.
    DeleteMutating,
    /// The configuration for validation is deleted.
    DeleteValidating,
    /// The CAs of all entries are replaced.
    ReplaceAuthorities,
    /// All entries let writes through when no replica answers.
    IgnoreFailures,
    /// The Secret is deleted.
    DeleteSecret,
    /// The Secret's key is overwritten.
    SpoilKey,
    /// The Secret's CAs are removed.
    DropAuthorities,
}

impl NetworkFault {
    const ALL: [Self; 6] = [Self::Lost, Self::AnswerLost, Self::AnswerCut, Self::Late, Self::TooMany, Self::Broken];
}

impl Tampering {
    const ALL: [Self; 8] = [
        Self::EmptyConfigurations,
        Self::DeleteMutating,
        Self::DeleteValidating,
        Self::ReplaceAuthorities,
        Self::IgnoreFailures,
        Self::DeleteSecret,
        Self::SpoilKey,
        Self::DropAuthorities,
    ];
}

impl Action {
    /// Returns true if replicas may fail, or may have something to repair, because of it.
    pub fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::DefineKind { .. }
                | Self::DeleteKind { .. }
                | Self::InstallKinds { .. }
                | Self::WriteValid { .. }
                | Self::WriteInvalid { .. }
                | Self::Label { .. }
                | Self::Save
                | Self::Compact
        )
    }

    /// Returns the time for which it lasts.
    pub fn lasts(self) -> u64 {
        match self {
            Self::Crash { down, .. } | Self::CrashAtWrite { down, .. } => down,
            Self::Network { lasts, .. } | Self::Outage { lasts } | Self::Lag { lasts, .. } => lasts,
            _ => 0,
        }
    }
}

/// Returns the events of a seed, in the order of their times.
pub fn events(seed: u64) -> Vec<Event> {
    let mut dice = Dice(seed);
    let mut events: Vec<Event> = (0..KINDS).map(|kind| Event { at: 1_000, action: define(&mut dice, kind) }).collect();
    events.push(Event { at: 20_000, action: Action::Save });
    let faults = 1 + dice.below(10);
    let writes = 10 + dice.below(40);
    for index in 0..faults + writes {
        let at = EVENTFUL.start + dice.below(usize::try_from(EVENTFUL.end - EVENTFUL.start).unwrap_or(1)) as u64;
        let action = if index < faults { fault(&mut dice) } else { write(&mut dice) };
        events.push(Event { at, action });
    }
    events.sort_by_key(|event| event.at);
    events
}

fn define(dice: &mut Dice, kind: usize) -> Action {
    Action::DefineKind { kind, members: 2 + dice.below(3) }
}

fn write(dice: &mut Dice) -> Action {
    let (kind, object) = (dice.below(KINDS), dice.below(OBJECTS));
    match dice.below(20) {
        0 => Action::DeleteKind { kind },
        1..=3 => define(dice, kind),
        4..=11 => Action::WriteValid { kind, object, member: dice.below(2) },
        12..=15 => Action::WriteInvalid { kind, object },
        _ => Action::Label { kind, object },
    }
}

fn fault(dice: &mut Dice) -> Action {
    let replica = dice.below(REPLICAS);
    let short = 500 + dice.below(20_000) as u64;
    match dice.below(17) {
        0 | 1 => Action::Crash { replica, down: short },
        2..=4 => Action::CrashAtWrite { replica, writes: dice.below(4), arrives: dice.chance(50), down: short },
        5 | 6 => Action::Upgrade { replica },
        7 => Action::Clock { replica, ahead: *dice.pick(&[0, 20, -20, 200, -200, 7_200, -7_200, 40_000_000]) },
        8..=10 => {
            let fault = *dice.pick(&NetworkFault::ALL);
            Action::Network { replica, fault, percent: *dice.pick(&[20, 60, 100]), lasts: short * 3 }
        }
        11 => Action::Outage { lasts: short },
        12 => Action::Lag { behind: 200 + dice.below(5_000) as u64, lasts: short * 3 },
        13 => *dice.pick(&[Action::Compact, Action::Save]),
        14 => Action::Restore { hangs: dice.chance(50) },
        _ => Action::Tamper(*dice.pick(&Tampering::ALL)),
    }
}
