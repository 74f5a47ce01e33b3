//! Which packet a number of the kernel belongs to, until the kernel has reported when it was sent.

use std::collections::VecDeque;

/// Packets that are remembered; of those before, the kernel's time is not used.
const REMEMBERED: usize = 8192;

/// Packets by the socket's numbers, which go up by one.
#[derive(Debug)]
pub(super) struct Sent<T> {
    packets: VecDeque<T>,
    /// The number of the next packet.
    next: u32,
}

impl<T> Default for Sent<T> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), next: 0 }
    }
}

impl<T: Copy> Sent<T> {
    /// A packet was sent with this number.
    pub(super) fn add(&mut self, number: u32, packet: T) {
        if number != self.next {
            // The socket has begun to count again.
            self.packets.clear();
        }
        if self.packets.len() == REMEMBERED {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
        self.next = number.wrapping_add(1);
    }

    /// The packet with this number.
    pub(super) fn get(&self, number: u32) -> Option<T> {
        let back = self.next.wrapping_sub(number) as usize;
        self.packets.get(self.packets.len().checked_sub(back)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_until_they_are_forgotten() {
        let mut sent = Sent::default();
        for number in 0..10_000_u32 {
            sent.add(number.wrapping_sub(5), number);
        }
        assert_eq!(sent.get(9_994), Some(9_999));
        assert_eq!(sent.get(9_995), None);
        assert_eq!(sent.get(9_994 - 8191), Some(1808));
        assert_eq!(sent.get(9_994 - 8192), None);
        sent.add(0, 7);
        assert_eq!((sent.get(0), sent.get(1), sent.get(u32::MAX)), (Some(7), None, None));
    }
}
