"""The ALTO client against answers of the kind that RFC 7285 shows, over HTTP on loopback."""

import http.server
import json
import threading
import unittest
from typing import Any, Dict, List, Tuple

from nigh_oracle import AltoClient, AltoError

DIRECTORY = {
    "meta": {
        "default-alto-network-map": "network",
        "cost-types": {
            "numerical": {"cost-mode": "numerical", "cost-metric": "routingcost"},
            "ordinal": {"cost-mode": "ordinal", "cost-metric": "routingcost"},
        },
    },
    "resources": {
        "network": {"uri": "/network", "media-type": "application/alto-networkmap+json"},
        "cost": {
            "uri": "/cost",
            "media-type": "application/alto-costmap+json",
            "capabilities": {"cost-type-names": ["numerical"]},
        },
        "endpoint": {
            "uri": "/endpoint",
            "media-type": "application/alto-endpointcost+json",
            "accepts": "application/alto-endpointcostparams+json",
            "capabilities": {"cost-type-names": ["ordinal"]},
        },
        "property": {
            "uri": "/property",
            "media-type": "application/alto-endpointprop+json",
            "accepts": "application/alto-endpointpropparams+json",
            "capabilities": {"prop-types": ["network.pid"]},
        },
    },
}

COSTS = {"ipv4:192.0.2.1": 2, "ipv6:2001:db8::1": 1}

ANSWERS: Dict[str, Tuple[int, str, Any]] = {
    "/directory": (200, "application/alto-directory+json", DIRECTORY),
    "/network": (200, "application/alto-networkmap+json", {"network-map": {}}),
    "/cost": (200, "application/alto-costmap+json", {"cost-map": {}}),
    "/endpoint": (
        200,
        "application/alto-endpointcost+json",
        {"endpoint-cost-map": {"ipv4:198.51.100.1": COSTS}},
    ),
    "/property": (
        400,
        "application/alto-error+json",
        {"meta": {"code": "E_INVALID_FIELD_VALUE", "field": "properties", "value": "nonsense"}},
    ),
    "/elsewhere": (200, "application/alto-directory+json", []),
    "/garbage": (502, "text/plain", "no JSON"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    asked: List[Tuple[str, Dict[str, str], Any]] = []

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.asked.append((self.path, dict(self.headers), body))
        status, media_type, answer = ANSWERS[self.path]
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


class Alto(unittest.TestCase):
    def setUp(self) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        Handler.asked.clear()
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        self.client = AltoClient(f"{self.base}/directory")

    def test_the_directory_is_read_once_and_says_where_the_maps_are(self) -> None:
        self.assertEqual(self.client.network_map(), {"network-map": {}})
        self.assertEqual(self.client.cost_map(), {"cost-map": {}})
        paths = [path for path, _, _ in Handler.asked]
        self.assertEqual(paths, ["/directory", "/network", "/cost"])
        self.assertIn("application/alto-error+json", Handler.asked[0][1]["Accept"])

    def test_what_the_server_does_not_have(self) -> None:
        with self.assertRaisesRegex(AltoError, "no cost map of latency"):
            self.client.cost_map("latency")
        with self.assertRaisesRegex(AltoError, "no resource 'other'"):
            self.client.network_map("other")
        with self.assertRaisesRegex(AltoError, "networkmapfilter"):
            self.client.filtered_network_map(["pid1"])

    def test_rank_asks_for_endpoint_costs(self) -> None:
        ranked = self.client.rank(["203.0.113.1", "192.0.2.1", "2001:db8::1"], "198.51.100.1")
        self.assertEqual(ranked, ["2001:db8::1", "192.0.2.1", "203.0.113.1"])
        path, headers, body = Handler.asked[-1]
        self.assertEqual(path, "/endpoint")
        self.assertEqual(headers["Content-Type"], "application/alto-endpointcostparams+json")
        self.assertEqual(
            body,
            {
                "cost-type": {"cost-metric": "routingcost", "cost-mode": "ordinal"},
                "endpoints": {
                    "srcs": ["ipv4:198.51.100.1"],
                    "dsts": ["ipv4:203.0.113.1", "ipv4:192.0.2.1", "ipv6:2001:db8::1"],
                },
            },
        )

    def test_an_error_has_its_code_field_and_value(self) -> None:
        with self.assertRaises(AltoError) as caught:
            self.client.endpoint_properties(["192.0.2.1"], ["nonsense"])
        error = caught.exception
        self.assertEqual(
            (error.status, error.code, error.field, error.value),
            (400, "E_INVALID_FIELD_VALUE", "properties", "nonsense"),
        )

    def test_what_is_no_alto(self) -> None:
        for path, complaint in (("/elsewhere", "not a JSON object"), ("/garbage", "status 502")):
            with self.assertRaisesRegex(AltoError, complaint):
                AltoClient(self.base + path).directory()
        with self.assertRaisesRegex(AltoError, "only http"):
            AltoClient("file:///etc/hostname").directory()
