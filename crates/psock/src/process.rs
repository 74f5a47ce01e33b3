//! What a process has of its own, also after fork(2).

use std::sync::OnceLock;

/// One value for each process: a child of fork(2) begins with a new one, whatever of its parent's was
/// locked by other threads when it was made.
///
/// ```
/// use psock::PerProcess;
/// use std::sync::Mutex;
///
/// static NAMES: PerProcess<Mutex<Vec<String>>> = PerProcess::new();
///
/// NAMES.get().lock().unwrap().push("one".to_owned());
/// assert_eq!(NAMES.get().lock().unwrap().len(), 1);
/// ```
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    first: OnceLock<&'static Node<T>>,
}

/// The value of one process, and those of its children and theirs.
#[derive(Debug)]
struct Node<T: 'static> {
    process: u32,
    value: T,
    next: OnceLock<&'static Node<T>>,
}

impl<T: Default> PerProcess<T> {
    /// No process has a value yet.
    pub const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// The calling process's value, which lives as long as the process.
    pub fn get(&self) -> &'static T {
        let process = std::process::id();
        let mut cell = &self.first;
        loop {
            while let Some(&node) = cell.get() {
                if node.process == process {
                    return &node.value;
                }
                cell = &node.next;
            }
            let node = Node { process, value: T::default(), next: OnceLock::new() };
            // Nothing but one pointer is written with others kept out. Another thread may have been
            // faster; then it is read again.
            let node: &'static Node<T> = Box::leak(Box::new(node));
            if cell.set(node).is_ok() {
                return &node.value;
            }
        }
    }
}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}
