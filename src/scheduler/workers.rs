//! Who can run the tasks of a queue: groups of workers, each with its labels and its slots.

/// Workers with exactly these labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkerGroup {
    /// Sorted.
    pub(super) labels: Box<[(Box<str>, Box<str>)]>,
    pub(super) capacity: u32,
    pub(super) busy: u32,
}

/// The groups of a queue. The first has no labels.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) groups: Vec<WorkerGroup>,
    pub(super) busy: u32,
    pub(super) capacity: u32,
}

impl Workers {
    pub(super) fn new(capacity: u32) -> Workers {
        Workers { groups: vec![WorkerGroup { labels: Box::new([]), capacity, busy: 0 }], busy: 0, capacity }
    }

    /// Sets the slots of a group, which need not have been known. Running attempts go on.
    pub(super) fn set(&mut self, labels: &[(Box<str>, Box<str>)], capacity: u32) {
        match self.groups.iter_mut().find(|group| *group.labels == *labels) {
            Some(group) => group.capacity = capacity,
            None => self.groups.push(WorkerGroup { labels: labels.into(), capacity, busy: 0 }),
        }
        self.capacity = self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.capacity));
    }

    /// A group with a free slot for a task that needs these labels: the one with the fewest labels, then the one with
    /// the most free slots, so that rare workers are kept for those who need them.
    pub(super) fn choose(&self, needed: &[(Box<str>, Box<str>)]) -> Option<usize> {
        if self.groups.len() == 1 {
            let only = &self.groups[0];
            return (needed.is_empty() && only.busy < only.capacity).then_some(0);
        }
        let fitting =
            self.groups.iter().enumerate().filter(|(_, group)| group.busy < group.capacity && group.carries(needed));
        let key = |group: &WorkerGroup| (group.labels.len(), group.busy as i64 - i64::from(group.capacity));
        fitting.min_by_key(|(at, group)| (key(group), *at)).map(|(at, _)| at)
    }

    /// Whether any group, busy or not, could run a task that needs these labels.
    pub(super) fn anybody_for(&self, needed: &[(Box<str>, Box<str>)]) -> bool {
        self.groups.iter().any(|group| group.capacity > 0 && group.carries(needed))
    }

    pub(super) fn begin(&mut self, group: usize) {
        self.groups[group].busy += 1;
        self.busy += 1;
    }

    pub(super) fn end(&mut self, group: usize) {
        self.groups[group].busy -= 1;
        self.busy -= 1;
    }

    /// Slots that are not in use.
    pub(super) fn free(&self) -> u32 {
        if let [only] = &self.groups[..] {
            return only.capacity.saturating_sub(only.busy);
        }
        self.groups.iter().map(|group| group.capacity.saturating_sub(group.busy)).sum()
    }
}

impl WorkerGroup {
    pub(super) fn carries(&self, needed: &[(Box<str>, Box<str>)]) -> bool {
        needed.iter().all(|label| self.labels.binary_search(label).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(of: &[(&str, &str)]) -> Box<[(Box<str>, Box<str>)]> {
        of.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn a_plain_task_leaves_rare_workers_to_those_who_need_them() {
        let mut workers = Workers::new(1);
        workers.set(&labels(&[("gpu", "a")]), 2);
        assert_eq!(workers.choose(&[]), Some(0));
        workers.begin(0);
        assert_eq!(workers.choose(&[]), Some(1), "labels do no harm to who needs none");
        assert_eq!(workers.choose(&labels(&[("gpu", "b")])), None);
        assert!(!workers.anybody_for(&labels(&[("gpu", "b")])));
        assert_eq!(workers.choose(&labels(&[("gpu", "a")])), Some(1));
        assert_eq!(workers.free(), 2);
    }

    #[test]
    fn fewer_slots_than_attempts_leave_none_free() {
        let mut workers = Workers::new(2);
        workers.begin(0);
        workers.begin(0);
        workers.set(&[], 1);
        assert_eq!((workers.free(), workers.choose(&[])), (0, None));
        workers.end(0);
        assert_eq!(workers.free(), 0);
        workers.end(0);
        assert_eq!(workers.free(), 1);
    }
}
