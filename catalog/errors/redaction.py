"""Secrets in texts that people read: what is one, and its removal.

What is not known to be harmless is a secret: an option by its name, a value in an address by its place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

REDACTED: Final = "********"
_CHAIN_MAX: Final = 20
_SECRET_CHARACTERS_MIN: Final = 4
"""Shorter ones would be found everywhere."""
_HARMLESS: Final = frozenset(
    """
    account_name allow_http allow_invalid_certificates bucket bucket_name ca_bundle checksum_algorithm
    conditional_put connect_timeout container container_name copy_if_not_exists default_region disable_tagging
    endpoint endpoint_url force_path_style imdsv1_fallback max_retries metadata_endpoint pool_idle_timeout
    pool_max_idle_per_host proxy_url region request_payer retry_timeout s3_allow_unsafe_rename s3_express
    server_side_encryption skip_signature sse_bucket_key_enabled timeout unsigned_payload use_emulator
    use_fabric_endpoint user_agent virtual_hosted_style_request
    """.split()  # noqa: SIM905 - a list of words is read more easily
)
"""Options of object stores that anybody may see, without the provider's name before them."""
_PROVIDER: Final = re.compile(r"^(?:aws_s3_|aws_|azure_storage_|azure_|google_|gcs_|s3_(?!express|allow))")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:\\?/){2}(?:[^\s/@\"]*@)?[^\s\"'`<>]+")
_USER: Final = re.compile(r"^([^/\\]+:(?:\\?/){2})([^/?#]*@|[^/@:]*:(?!\d{1,5}(?:[/?]|$))[^@]*@)")
"""A user before the host of an address; a password may have what ought to be percent-encoded, @ and slashes too."""
_BARE_USER: Final = re.compile(r"^[^\s/@]+@(?=[^@]+$)")
"""A user before a host without a scheme, such as a proxy may be given."""
_ENVIRONMENT: Final = re.compile(
    r"(?:AWS|AZURE|GOOGLE|GCS)_(?!.*_(?:FILE|URI|PATH)$).*(?:KEY|TOKEN|SECRET|PASSWORD|SAS).*"
)
_PARAMETER: Final = re.compile(r"(?<=[?&;#])([^=&;#?]*=)([^&;#]*)")
_PUBLIC_VALUE: Final = re.compile(r"true|false|\*{8}", re.IGNORECASE)


def is_secret_option(name: str) -> bool:
    """Tell if an option of an object store may be a secret: every one that is not known to be harmless."""
    return _PROVIDER.sub("", name.lower()) not in _HARMLESS


def redact_addresses(text: str) -> str:
    """Replace users, passwords and the values of parameters in all addresses of a text."""
    return _ADDRESS.sub(lambda found: _redacted(found[0]), text) if "/" in text and ":" in text else text


def redact(text: str, secrets: Collection[str] = ()) -> str:
    """Replace secrets in a text, as they are or as JSON and URLs spell them, and what addresses hold."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SECRET_CHARACTERS_MIN:
            for form in (
                secret,
                json.dumps(secret, ensure_ascii=False)[1:-1],
                json.dumps(secret)[1:-1],
                repr(secret)[1:-1],
                quote(secret, safe=""),
                quote(secret),
                quote_plus(secret),
            ):
                text = text.replace(form, REDACTED)
    return redact_addresses(text)


def secrets_of(options: Mapping[str, str], *addresses: str | None) -> tuple[str, ...]:
    """Return what must never be shown: values of options, parts of addresses, and variables of object stores."""
    hidden = [value for name, value in options.items() if is_secret_option(name)]
    shown = [value for name, value in options.items() if not is_secret_option(name)]
    parts = [part for text in (*shown, *addresses) if text is not None for part in _secret_parts(text)]
    bare = [found[0][:-1] for text in shown if (found := _BARE_USER.match(text))]
    told = [value for name, value in os.environ.items() if _ENVIRONMENT.fullmatch(name)]
    return tuple(dict.fromkeys((*hidden, *parts, *bare, *told)))


def redact_option(name: str, value: str) -> str:
    """Return the value of an option as anybody may see it."""
    return REDACTED if is_secret_option(name) else redact_addresses(_BARE_USER.sub(f"{REDACTED}@", value))


def redacted_cause(error: BaseException, secrets: Collection[str]) -> BaseException:
    """Return an error to raise ours from: itself, or without its secrets if a traceback would show them.

    Whoever logs our error logs the errors behind it too.
    """
    told: list[str] = []
    own: BaseException | None = error
    while own is not None and len(told) < _CHAIN_MAX:
        told.append(f"{type(own).__name__}: {own}")
        own = own.__cause__ or own.__context__
    hidden = [redact(text, secrets) for text in told]
    return error if hidden == told else RuntimeError("; caused by ".join(hidden))


def _redacted(address: str) -> str:
    hidden = _USER.sub(lambda found: f"{found[1]}{REDACTED}@", address)
    return _PARAMETER.sub(lambda own: own[0] if _PUBLIC_VALUE.fullmatch(own[2]) else f"{own[1]}{REDACTED}", hidden)


def _secret_parts(text: str) -> Iterator[str]:
    """Yield passwords and parameters of the addresses in a text, as they are and decoded; a user is no secret alone."""
    for address in _ADDRESS.findall(text):
        if (user := _USER.match(address)) is not None:
            name, _, password = user[2][:-1].partition(":")
            yield from {password or name, unquote(password or name)}
        for _, value in _PARAMETER.findall(address):
            if not _PUBLIC_VALUE.fullmatch(value):
                yield from {value, unquote_plus(value)}
