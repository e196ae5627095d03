#!/bin/sh
# The independent witnesses and real peers of the tests. Installs what is missing where that is allowed without asking for a
# password; otherwise says what to install and which tests will be skipped. Never fails: the tests themselves skip, loudly.
missing=""
need() { # need PROGRAM PACKAGE WHAT-IS-SKIPPED
    PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 || { missing="$missing $2"; echo "missing $1 (package $2): $3" >&2; }
}
need tshark  tshark   "comparisons with tshark"
need tcpdump tcpdump  "captures by tcpdump"
need nginx   nginx    "probes of nginx"
need nghttpd nghttp2  "probes of nghttpd"
need caddy   caddy    "probes of caddy"
need curl    curl     "comparisons with curl"
need ip      iproute2 "network namespaces"
need chromium chromium "HTML reports opened in a browser"
[ -z "$missing" ] && exit 0

if command -v apt-get >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ]; then as_root=""; elif sudo -n true 2>/dev/null; then as_root="sudo -n"; else as_root=none; fi
    if [ "$as_root" != none ]; then
        echo "installing$missing" >&2
        $as_root apt-get update -qq >/dev/null 2>&1
        # shellcheck disable=SC2086  # a list of packages
        DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 && exit 0
        echo "some packages could not be installed; the tests that need them are skipped" >&2
        exit 0
    fi
fi
echo "to run every test, install:$missing   (the tests that need them are skipped)" >&2
exit 0
