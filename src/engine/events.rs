//! What a tick tells the host, packed for one crossing: numbers apart, texts in one string.

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A run's function is to be called. a: slot, b: 1 if recorded results follow. Text: id, key root, type, input.
    Start = 1,
    /// A run has deliveries. a: slot.
    Wake = 2,
    /// A step's body may run. a: slot, b: step. Text: attempt, flags, lease, details of the last heartbeat.
    Attempt = 3,
    /// An attempt's limit is over. a: slot, b: step. Text: lease, `t` or `h`.
    Timeout = 4,
    /// A run's code is to be dropped. a: slot, b: status, 0 if it has not ended.
    Ended = 5,
    /// A request is recorded and durable. a: token.
    Ack = 6,
    /// The answer to a request. a: token. Text: the answer.
    Reply = 7,
    /// A request is refused. a: token. Text: code, message.
    Refuse = 8,
    /// How a run ended. a: token, b: status. Text: payload.
    Result = 9,
    /// The storage failed. Text: code, message.
    Failed = 10,
    /// For listeners. b: 1 completed, 2 ended otherwise, 3 stuck; also without one: 4 a journal has come to half of a
    /// bound. Text: id, run id, type, status, then the payload, the message, or why it is stuck in seven fields.
    Notice = 11,
    /// To whoever opened the group: a part is blocked, or works again. a: its number, b: 1 blocked, 0 not. Text: for how
    /// long, in ms; id, run id and type of the run that it entered last.
    Blocked = 12,
    /// Somebody asks the code of a run. a: token of the answer, b: slot, 2^32 - 1 if the run has ended. Text: name of the
    /// query, id, run id, input.
    Ask = 13,
    /// A run's code is to validate an update. a: slot, b: number of the offer. Text: name, payload.
    Offer = 14,
    /// The function of a task is to run. a: slot of the lease, b: attempt. Text: the lease's serial, number, type, input.
    Task = 15,
    /// An attempt of a task is to be given up. a: slot of the lease, b: 0 too long, 1 silent, 2 cancelled, 3 shutdown.
    /// Text: the lease's serial.
    TaskAbort = 16,
    /// For listeners. a: 0 a task ended, b its outcome; 1 an attempt of it did and another one follows; also without
    /// one: 2 a warning. Text: id, type, attempts, then payload and history, or why it ended; or the warning.
    TaskNotice = 17,
}

/// One thing that happened. What `a`, `b` and `text` are depends on the kind; fields of a text are joined by U+001F.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the kinds say what they are")]
pub struct Event {
    pub kind: EventKind,
    pub a: u32,
    pub b: u32,
    pub text: String,
}

/// Separates the fields of a text. Ids, names and types contain no control characters, payloads none below U+0020.
pub const FIELD: char = '\u{1f}';

/// Separates names and values of search attributes.
pub const PART: char = '\u{1d}';

/// Comes before each text of a list that is the value of a search attribute.
pub const TEXT: char = '\u{1c}';

/// Separates the rows of a text.
pub const ROW: char = '\u{1e}';

/// Events in order. The buffers are kept between ticks.
#[derive(Debug, Default)]
pub struct Events {
    list: Vec<Event>,
}

impl Events {
    /// Adds an event.
    pub fn push(&mut self, kind: EventKind, a: u32, b: u32, text: String) {
        self.list.push(Event { kind, a, b, text });
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes all of them, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Event> {
        self.list.drain(..)
    }
}

/// Fields of a text.
pub(super) fn fields(parts: &[&str]) -> String {
    let mut text = String::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push(FIELD);
        }
        text.push_str(part);
    }
    text
}
