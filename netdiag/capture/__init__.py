"""Where packets come from: readers and writers of capture files (``source``), and live capture by whatever backend this host has (``live``)."""
