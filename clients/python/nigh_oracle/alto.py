"""ALTO over HTTPS (RFC 7285): the directory, maps, endpoint properties and endpoint costs.

    from nigh_oracle import AltoClient
    alto = AltoClient("https://alto.example.net:6671/directory")
    alto.rank(["198.51.100.7", "203.0.113.9"])         # best first

The client learns every other address from the directory, as RFC 7285 section 9.2 wants it.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from .digest import DigestHandler

Json = Dict[str, Any]

_LARGEST = 256 << 20
"""Bytes of the largest answer that is read."""

DIRECTORY = "application/alto-directory+json"
NETWORK_MAP = "application/alto-networkmap+json"
NETWORK_MAP_FILTER = "application/alto-networkmapfilter+json"
COST_MAP = "application/alto-costmap+json"
COST_MAP_FILTER = "application/alto-costmapfilter+json"
ENDPOINT_PROPERTY = "application/alto-endpointprop+json"
ENDPOINT_PROPERTY_PARAMS = "application/alto-endpointpropparams+json"
ENDPOINT_COST = "application/alto-endpointcost+json"
ENDPOINT_COST_PARAMS = "application/alto-endpointcostparams+json"
ERROR = "application/alto-error+json"


class AltoError(Exception):
    """The server refused, or does not have what was asked for.

    ``code``, ``field`` and ``value`` are those of RFC 7285 section 8.5.2, where the server gave them.
    """

    def __init__(
        self,
        message: str,
        status: Optional[int] = None,
        code: Optional[str] = None,
        field: Optional[str] = None,
        value: Any = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.field, self.value = status, code, field, value


def endpoint(address: str) -> str:
    """A typed endpoint address (RFC 7285 section 10.4) from an address."""
    if address.startswith(("ipv4:", "ipv6:")):
        return address
    return ("ipv6:" if ":" in address else "ipv4:") + address


class AltoClient:
    """One ALTO server, known by the URI of its directory.

    ``context`` is the TLS context: for a self-signed certificate
    ``ssl.create_default_context(cafile="certificate.pem")``; one with ``load_cert_chain`` shows a
    certificate of the client's. ``user`` and ``password`` are for a server that asks for HTTP Digest
    (RFC 7616, SHA-256), and go to the directory's server alone. ``timeout`` is in seconds.
    """

    def __init__(
        self,
        directory: str,
        *,
        context: Optional[ssl.SSLContext] = None,
        user: Optional[str] = None,
        password: str = "",
        timeout: float = 10.0,
    ) -> None:
        self.uri, self.timeout = directory, timeout
        handlers: List[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context)]
        if user is not None:
            handlers.append(DigestHandler(directory, user, password))
        self._opener = urllib.request.build_opener(*handlers)
        self._directory: Optional[Json] = None

    def directory(self) -> Json:
        """The information resource directory; read once."""
        if self._directory is None:
            self._directory = self._call(self.uri, DIRECTORY)
        return self._directory

    def resources(self, media_type: str, accepts: Optional[str] = None) -> Dict[str, Json]:
        """The directory's entries of a media type, by resource id."""
        entries: Mapping[str, Json] = self.directory().get("resources", {})
        return {
            name: entry
            for name, entry in entries.items()
            if entry.get("media-type") == media_type and entry.get("accepts") == accepts
        }

    def network_map(self, resource: Optional[str] = None) -> Json:
        """A whole network map; the default one if none is named."""
        if resource is None:
            resource = self.directory().get("meta", {}).get("default-alto-network-map")
        return self._get(NETWORK_MAP, resource)

    def cost_map(self, metric: str = "routingcost", mode: str = "numerical") -> Json:
        """A whole cost map of a cost type."""
        wanted = {"cost-metric": metric, "cost-mode": mode}
        for name, entry in self.resources(COST_MAP).items():
            if self._offers(entry, wanted):
                return self._get(COST_MAP, name)
        raise AltoError(f"the server has no cost map of {metric}, {mode}")

    def filtered_network_map(self, pids: Sequence[str], resource: Optional[str] = None) -> Json:
        """The network map of some PIDs only."""
        return self._post(NETWORK_MAP, NETWORK_MAP_FILTER, {"pids": list(pids)}, resource)

    def filtered_cost_map(
        self,
        sources: Sequence[str],
        destinations: Sequence[str],
        metric: str = "routingcost",
        mode: str = "numerical",
        constraints: Sequence[str] = (),
    ) -> Json:
        """Costs between some PIDs; an empty list of them means all."""
        body: Json = {
            "cost-type": {"cost-metric": metric, "cost-mode": mode},
            "pids": {"srcs": list(sources), "dsts": list(destinations)},
        }
        if constraints:
            body["constraints"] = list(constraints)
        return self._post(COST_MAP, COST_MAP_FILTER, body)

    def endpoint_properties(
        self, addresses: Iterable[str], properties: Optional[Sequence[str]] = None
    ) -> Dict[str, Dict[str, str]]:
        """Properties of addresses, such as ``default.pid`` or ``priv:name``; all that the service has
        if none are named."""
        name, entry = self._only(ENDPOINT_PROPERTY, ENDPOINT_PROPERTY_PARAMS)
        if properties is None:
            properties = entry.get("capabilities", {}).get("prop-types", [])
        body = {"properties": list(properties), "endpoints": [endpoint(each) for each in addresses]}
        answer = self._post(ENDPOINT_PROPERTY, ENDPOINT_PROPERTY_PARAMS, body, name)
        result: Dict[str, Dict[str, str]] = answer["endpoint-properties"]
        return result

    def endpoint_costs(
        self,
        sources: Iterable[str],
        destinations: Iterable[str],
        metric: str = "routingcost",
        mode: str = "ordinal",
    ) -> Dict[str, Dict[str, float]]:
        """Costs from sources to destinations; without sources, from the client's own address."""
        ends: Json = {"dsts": [endpoint(each) for each in destinations]}
        if srcs := [endpoint(each) for each in sources]:
            ends["srcs"] = srcs
        body = {"cost-type": {"cost-metric": metric, "cost-mode": mode}, "endpoints": ends}
        answer = self._post(ENDPOINT_COST, ENDPOINT_COST_PARAMS, body)
        result: Dict[str, Dict[str, float]] = answer["endpoint-cost-map"]
        return result

    def rank(
        self, candidates: Iterable[str], source: Optional[str] = None, metric: str = "routingcost"
    ) -> List[str]:
        """The candidates, best first; equals keep their order, what has no cost goes last."""
        asked = list(candidates)
        rows = self.endpoint_costs([source] if source else [], asked, metric)
        costs = next(iter(rows.values()), {})
        return sorted(asked, key=lambda each: costs.get(endpoint(each), float("inf")))

    def _only(self, media_type: str, accepts: Optional[str]) -> "tuple[str, Json]":
        for name, entry in self.resources(media_type, accepts).items():
            return name, entry
        raise AltoError(f"the server's directory has no {media_type} that accepts {accepts}")

    def _offers(self, entry: Json, wanted: Json) -> bool:
        types = self.directory().get("meta", {}).get("cost-types", {})
        names = entry.get("capabilities", {}).get("cost-type-names", [])
        return any(
            all(types.get(name, {}).get(key) == value for key, value in wanted.items())
            for name in names
        )

    def _entry(self, media_type: str, accepts: Optional[str], resource: Optional[str]) -> Json:
        if resource is None:
            return self._only(media_type, accepts)[1]
        try:
            return self.resources(media_type, accepts)[resource]
        except KeyError:
            raise AltoError(f"the server's directory has no resource {resource!r}") from None

    def _get(self, media_type: str, resource: Optional[str] = None) -> Json:
        return self._call(self._entry(media_type, None, resource)["uri"], media_type)

    def _post(
        self, media_type: str, accepts: str, body: Json, resource: Optional[str] = None
    ) -> Json:
        entry = self._entry(media_type, accepts, resource)
        return self._call(entry["uri"], media_type, accepts, json.dumps(body).encode())

    def _call(
        self, uri: str, accept: str, content_type: Optional[str] = None, body: Optional[bytes] = None
    ) -> Json:
        # A directory may give URIs relative to its own (RFC 3986 section 5).
        uri = urllib.parse.urljoin(self.uri, uri)
        if urllib.parse.urlsplit(uri).scheme not in ("http", "https"):
            raise AltoError(f"{uri}: only http and https are asked")
        headers = {"Accept": f"{accept},{ERROR}"}
        if content_type is not None:
            headers["Content-Type"] = content_type
        request = urllib.request.Request(uri, data=body, headers=headers)
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                content = response.read(_LARGEST + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(uri, error.code, error.read(1 << 20)) from None
        except urllib.error.URLError as error:
            raise AltoError(f"{uri}: {error.reason}") from error
        if len(content) > _LARGEST:
            raise AltoError(f"{uri}: an answer of more than {_LARGEST} bytes")
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise AltoError(f"{uri}: the answer is not JSON: {error}") from error
        if not isinstance(answer, dict):
            raise AltoError(f"{uri}: the answer is not a JSON object")
        return answer


def _refusal(uri: str, status: int, body: bytes) -> AltoError:
    """The error that an answer with an HTTP error status stands for (RFC 7285 section 8.5)."""
    try:
        meta = json.loads(body)["meta"]
        code, field, value = meta["code"], meta.get("field"), meta.get("value")
    except (ValueError, KeyError, TypeError):
        advice = ": it asks for another user or password" if status == 401 else ""
        return AltoError(f"{uri}: HTTP status {status}{advice}", status)
    parts = [f"{uri}: {code}"]
    parts += [f"field {field}"] if field is not None else []
    parts += [f"value {value!r}"] if value is not None else []
    return AltoError(", ".join(parts), status, code, field, value)
