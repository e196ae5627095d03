"""The rooms of the terminal report: page (lines of one width), bars, notes, blocks, header, summary. ``export.text`` puts them together."""
