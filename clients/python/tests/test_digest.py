"""HTTP Digest against the example of RFC 7616 and a server that checks it."""

import http.server
import json
import threading
import unittest
from typing import Any, List

from nigh_oracle import AltoClient, AltoError
from nigh_oracle.digest import parse, response

CHALLENGE = (
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, '
    'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", '
    'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
)


class Guard(http.server.BaseHTTPRequestHandler):
    """Lets in who answers the challenge of the moment with the password "secret"."""

    nonce = "first"
    statuses: List[int] = []

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = parse(self.headers.get("Authorization", ""))
        status, stale = 401, False
        if given is not None:
            challenge = {"realm": "alto", "nonce": given["nonce"], "opaque": "o"}
            count, cnonce = int(given["nc"], 16), given["cnonce"]
            right = response(
                challenge, "cache", "secret", self.command, self.path, count, cnonce
            )
            same = self.headers["Authorization"] == right
            stale = same and given["nonce"] != Guard.nonce
            status = 200 if same and not stale else 401
        Guard.statuses.append(status)
        content = json.dumps({"resources": {}}).encode()
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Basic realm=alto")
            words = f'realm="alto", nonce="{Guard.nonce}", opaque="o", qop="auth", algorithm=SHA-256'
            self.send_header("WWW-Authenticate", f"Digest {words}, stale={str(stale).lower()}")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


class Digest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Guard)
        self.addCleanup(self.server.server_close)
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.uri = f"http://127.0.0.1:{self.server.server_address[1]}/directory"
        Guard.statuses, Guard.nonce = [], "first"

    def test_the_example_of_rfc_7616_section_3_9_1(self) -> None:
        challenge = parse(CHALLENGE)
        assert challenge is not None
        value = response(
            challenge,
            "Mufasa",
            "Circle of Life",
            "GET",
            "/dir/index.html",
            1,
            "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
        )
        self.assertIn(
            'response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"', value
        )
        self.assertIn('opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"', value)

    def test_only_what_can_be_answered_is_answered(self) -> None:
        for text in ["", "Basic realm=x", "Digest", CHALLENGE.replace("SHA-256", "MD5")]:
            self.assertIsNone(parse(text), text)
        self.assertIsNone(parse(CHALLENGE.replace("auth, auth-int", "auth-int")))

    def test_the_right_password_is_let_in_and_signs_at_once_the_next_time(self) -> None:
        alto = AltoClient(self.uri, user="cache", password="secret")
        alto.directory()
        self.assertEqual(Guard.statuses, [401, 200])
        alto._directory = None
        alto.directory()
        self.assertEqual(Guard.statuses, [401, 200, 200])

    def test_a_nonce_that_is_too_old_is_replaced(self) -> None:
        alto = AltoClient(self.uri, user="cache", password="secret")
        alto.directory()
        Guard.nonce, alto._directory = "second", None
        alto.directory()
        self.assertEqual(Guard.statuses, [401, 200, 401, 200])

    def test_a_wrong_password_is_tried_once(self) -> None:
        alto = AltoClient(self.uri, user="cache", password="wrong")
        for _ in range(2):
            with self.assertRaises(AltoError) as refused:
                alto.directory()
            self.assertEqual(refused.exception.status, 401)
        self.assertLessEqual(len(Guard.statuses), 4)

    def test_nobody_else_is_told(self) -> None:
        alto = AltoClient("http://127.0.0.1:1/directory", user="cache", password="secret")
        with self.assertRaises(AltoError):
            alto._call(self.uri, "application/alto-directory+json")
        self.assertEqual(Guard.statuses, [401])


if __name__ == "__main__":
    unittest.main()
