"""The verdicts of a comparison in words, the same on the terminal and in pictures."""

from __future__ import annotations

VERDICTS = {
    "faster": "faster",
    "slower": "slower",
    "faster-but-too-little": "faster, too little to matter",
    "slower-but-too-little": "slower, too little to matter",
    "no-difference-that-matters": "no difference that matters",
    "cannot-tell": "cannot tell",
}
