"""Secrets leave by no door: header values, request targets and URLs with what is secret in them replaced.

Applied where a turn is made, so that no record ever holds a credential. What is kept tells *that* a credential was sent and of which
scheme (``Bearer REDACTED``). The marker has no brackets: markup languages would take them for their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MARKER = "REDACTED"

_SECRET_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "cookie2",
        "set-cookie",
        "set-cookie2",
        "x-api-key",
        "api-key",
        "apikey",
        "x-goog-api-key",
        "x-amz-security-token",
        "openai-organization",
        "openai-project",
        "anthropic-organization-id",
        "x-amz-credential",
        "authentication-info",
        "proxy-authentication-info",
        "x-forwarded-client-cert",
        "x-ms-token-aad-access-token",
        "x-amz-signature",
        "sec-websocket-protocol-token",
    }
)
_HARMLESS_HEADERS = frozenset(
    {
        "idempotency-key",
        "x-idempotency-key",
        "sec-websocket-key",
        "sec-websocket-key1",
        "sec-websocket-key2",
        "surrogate-key",
        "x-cache-key",
        "cache-key",
        "key",
        "x-should-retry",
        "www-authenticate",
        "proxy-authenticate",
    }
)
# Whole words of a header name (split at - _ .) that make its value a secret.
_SECRET_WORDS = frozenset(
    {
        "auth",
        "authorization",
        "authentication",
        "token",
        "secret",
        "secrets",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "cookie",
        "credential",
        "credentials",
        "apikey",
        "jwt",
        "bearer",
        "assertion",
        "signature",
        "accesskey",
        "privatekey",
        "sessionid",
        "csrf",
        "xsrf",
        "csrftoken",
        "authtoken",
        "accesstoken",
    }
)
_HOST_HEADERS = frozenset({"host", ":authority", "x-forwarded-host"})
"""Names of machines ("sk-1.example.net"), which are looked up in the open and are no credentials whatever they look like."""
_HOST = re.compile(r"[A-Za-z0-9_.\-]{1,255}(?::\d{1,5})?")
_WORD_BREAK = re.compile(r"[-_.:]")
# "time per token", "time to first token": measurements, not credentials.
_TOKEN_MEASUREMENT = re.compile(r"(?:first|per|last|next)[-_]token$")
_SCHEMES = frozenset(
    {"basic", "bearer", "digest", "negotiate", "ntlm", "hoba", "mutual", "hawk", "token", "apikey", "aws4-hmac-sha256"}
)

# Names of query parameters; compared in lower case with - and _ removed.
_SECRET_PARAMETERS = frozenset(
    {
        "key",
        "apikey",
        "xapikey",
        "xgoogapikey",
        "accesskey",
        "accesskeyid",
        "awsaccesskeyid",
        "secretkey",
        "subscriptionkey",
        "authkey",
        "appkey",
        "appsecret",
        "clientsecret",
        "secret",
        "token",
        "accesstoken",
        "refreshtoken",
        "idtoken",
        "idtokenhint",
        "authtoken",
        "sessiontoken",
        "securitytoken",
        "xamzsecuritytoken",
        "xamzcredential",
        "xamzsignature",
        "xgoogcredential",
        "xgoogsignature",
        "csrftoken",
        "oauthtoken",
        "oauthsignature",
        "auth",
        "authorization",
        "bearer",
        "jwt",
        "assertion",
        "clientassertion",
        "samlrequest",
        "samlresponse",
        "password",
        "passwd",
        "passphrase",
        "pass",
        "pwd",
        "pw",
        "credential",
        "credentials",
        "sig",
        "signature",
        "hmac",
        "session",
        "sessionid",
        "sid",
        "jsessionid",
        "phpsessid",
        "code",
        "codeverifier",
        "otp",
        "pin",
        "ticket",
        "cookie",
    }
)
# "user_key" and "licenseKey" carry credentials; these words before "key" say that it is a name in a table or a cache.
_HARMLESS_BEFORE_KEY = frozenset(
    {"sort", "order", "group", "primary", "foreign", "partition", "range", "row", "object", "cache", "surrogate", "public", "idempotency"}
)  # fmt: skip
_WORDS_OF_A_PARAMETER = re.compile(r"[-_.]|(?<=[a-z])(?=[A-Z])")
_SECRET_PARAMETER_ENDS = ("token", "secret", "password", "apikey", "signature", "credential", "credentials", "passwd")
# Every repetition below is bounded, and a credential is cut off by one look at where it begins: a value of 64 KiB made to match almost
# everywhere must not cost its square.
_PARAMETER = re.compile(r"([?&;#])([^=&;#?\s]{1,128})=([^&;#\s\"'<>]*)")
_USERINFO = re.compile(r"(://)[^/?#\s@\"'<>]{0,512}@")
_WORD = re.compile(r"[A-Za-z0-9_.\-]{15,}")
# Beginnings of credentials that are known by their shape: JSON Web Token; OpenAI, Anthropic, Stripe; Google; AWS; GitHub; GitLab; Slack;
# Hugging Face, Groq, Replicate, xAI, Perplexity, NVIDIA, Fireworks, Together; Google OAuth.
_SHAPED = re.compile(
    r"(?:^|(?<=[_.\-]))(?:eyJ(?=[^.]{8,1024}\.)|[spr]k[-_](?=.{0,256}\d)|AIza|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-"
    r"|(?:hf|gsk|r8|fw|tgp)_|(?:xai|pplx|nvapi)-|ya29\.)(?=.{12})"
)
_SCHEME_AND_VALUE = re.compile(
    r"\b([Bb]earer|BEARER|[Bb]asic|BASIC)[ \t]{1,4}(?=[A-Za-z0-9+/_.\-~]{0,15}(?:\d|.{8}))[A-Za-z0-9+/=_.\-~]{8,}"
)


def redact_headers(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The same fields with secret values replaced. Names are compared in lower case and returned as given."""
    return tuple((name, redact_value(name, value)) for name, value in pairs)


@lru_cache(maxsize=4096)
def redact_value(name: str, value: str) -> str:
    """The value of one header field or gRPC metadata entry, with what is secret replaced."""
    lower = name.lower()
    if is_secret_name(lower):
        return _keep_scheme(value)
    return value if lower in _HOST_HEADERS and _HOST.fullmatch(value) else redact_text(value)


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a header of this (lower case) name carries a credential or an account's identity."""
    if name in _SECRET_HEADERS:
        return True
    if name in _HARMLESS_HEADERS or _TOKEN_MEASUREMENT.search(name):
        return False
    words = _WORD_BREAK.split(name)
    return words[-1] == "key" or words[-2:] == ["session", "id"] or not _SECRET_WORDS.isdisjoint(words)


def redact_target(path: str) -> str:
    """A request target or URL: userinfo and the values of secret-looking query parameters replaced, all else as it was."""
    return redact_text(path)


def redact_text(text: str) -> str:
    """Any text that may hold URLs or credentials: userinfo, secret query values and credential-shaped words replaced."""
    if "@" in text:
        text = _USERINFO.sub(rf"\1{MARKER}@", text)
    if "=" in text:
        text = _PARAMETER.sub(_redact_parameter, text)
    if len(text) < 15:
        return text
    if " " in text:
        text = _SCHEME_AND_VALUE.sub(rf"\1 {MARKER}", text)
    return _WORD.sub(_redact_shaped, text)


def _redact_shaped(word: re.Match[str]) -> str:
    # After a percent-escape ("%3Dsk-…") the first two letters are the escape's, not the word's.
    escape = 2 if word.start() and word.string[word.start() - 1] == "%" else 0
    text = word.group()
    begins = _SHAPED.search(text[escape:])
    return text if begins is None else text[: escape + begins.start()] + MARKER


def _keep_scheme(value: str) -> str:
    scheme, blank, _ = value.partition(" ")
    return f"{scheme} {MARKER}" if blank and scheme.lower() in _SCHEMES else MARKER


def _redact_parameter(match: re.Match[str]) -> str:
    separator, name, value = match.groups()
    return f"{separator}{name}={MARKER}" if value and is_secret_parameter(name) else match.group()


def is_secret_parameter(name: str) -> bool:
    """Whether a query parameter of this name carries a credential."""
    given = _unquote(name).replace("[]", "")
    plain = given.lower().replace("-", "").replace("_", "")
    return plain in _SECRET_PARAMETERS or plain.endswith(_SECRET_PARAMETER_ENDS) or _ends_in_key(given)


def _ends_in_key(name: str) -> bool:
    words = [word.lower() for word in _WORDS_OF_A_PARAMETER.split(name)]
    return len(words) > 1 and words[-1] == "key" and words[-2] not in _HARMLESS_BEFORE_KEY


def _unquote(name: str) -> str:
    """Percent-decoded, since ``%6bey`` is ``key`` to the server."""
    if "%" not in name:
        return name
    from urllib.parse import unquote

    return unquote(name)
