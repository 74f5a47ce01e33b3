"""``python3 -m nigh_oracle SERVER CANDIDATE...``: prints the candidates, best first."""

import argparse
import sys

from .proxidor import PORT, Oracle, OracleError


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m nigh_oracle",
        description="Asks an oracle to rank candidates and prints them, best first.",
        epilog="Example: python3 -m nigh_oracle 192.0.2.53 198.51.100.7 203.0.113.0/24",
    )
    parser.add_argument("server", help="the oracle's address or name")
    parser.add_argument("candidates", nargs="+", metavar="candidate", help="an address or a prefix")
    parser.add_argument("--port", type=int, default=PORT, help=f"UDP port (default {PORT})")
    parser.add_argument("--metric", type=int, help="number of one of the server's metrics")
    parser.add_argument("--source", help="rank from this address or prefix instead")
    parser.add_argument("--timeout", type=float, default=0.5, help="seconds for each of three tries")
    arguments = parser.parse_args()
    try:
        oracle = Oracle(arguments.server, arguments.port, timeout=arguments.timeout)
        answer = oracle.ask(arguments.candidates, metric=arguments.metric, source=arguments.source)
    except (OracleError, OSError, ValueError) as error:
        print(f"nigh_oracle: {error}", file=sys.stderr)
        return 1
    print(*answer.candidates, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
