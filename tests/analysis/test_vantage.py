import pytest

from netdiag.analysis.vantage import vantage
from netdiag.records.connection import Vantage

MS = 1_000_000


@pytest.mark.parametrize(
    ("syn", "syn_ack", "ack", "place"),
    [
        (0, 40 * MS, 40 * MS + 60_000, Vantage.CLIENT),
        (0, 50_000, 40 * MS, Vantage.SERVER),
        (0, 20 * MS, 40 * MS, Vantage.MIDDLE),
        (0, 30_000, 55_000, None),
        (None, 40 * MS, 41 * MS, None),
        (0, None, 41 * MS, None),
        (0, 40 * MS, None, None),
        (10, 5, 20, None),
    ],
)
def test_the_place_is_where_the_round_trip_is_short(
    syn: int | None, syn_ack: int | None, ack: int | None, place: Vantage | None
) -> None:
    assert vantage(syn, syn_ack, ack) is place
