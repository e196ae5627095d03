import pytest

from netdiag.analysis.vantage import vantage
from netdiag.records.connection import Vantage

MS = 1_000_000


@pytest.mark.parametrize(
    ("to_server", "to_client", "place"),
    [
        (40 * MS, 60_000, Vantage.CLIENT),
        (50_000, 40 * MS, Vantage.SERVER),
        (20 * MS, 20 * MS, Vantage.MIDDLE),
        (30_000, 25_000, None),
        (None, 40 * MS, None),
        (40 * MS, None, None),
    ],
)
def test_the_place_is_where_the_round_trip_is_short(
    to_server: int | None, to_client: int | None, place: Vantage | None
) -> None:
    assert vantage(to_server, to_client) is place
