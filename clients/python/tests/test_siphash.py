"""SipHash-2-4 against the values of its paper."""

import unittest

from nigh_oracle.siphash import siphash24

KEY = bytes(range(16))


class SipHash(unittest.TestCase):
    def test_example_of_the_paper(self) -> None:
        # Appendix A of the paper: a message of 15 bytes.
        self.assertEqual(siphash24(KEY, bytes(range(15))), 0xA129CA6149BE45E5)

    def test_every_length_has_a_tag_of_its_own(self) -> None:
        tags = {siphash24(KEY, bytes(length)) for length in range(64)}
        self.assertEqual(len(tags), 64)

    def test_a_key_has_16_bytes(self) -> None:
        with self.assertRaisesRegex(ValueError, "16 bytes"):
            siphash24(b"short", b"")
