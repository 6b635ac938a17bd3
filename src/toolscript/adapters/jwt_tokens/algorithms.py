"""What a token may be signed with. Nothing that is secret on both sides, and nothing that signs nothing."""

from collections.abc import Mapping

from joserfc.jws import JWSRegistry

MOST_BYTES = 8 * 1024

# The type of key and the curve that each needs. The last two are old and new names of the same.
FITS: Mapping[str, tuple[str, str]] = {
    "RS256": ("RSA", ""),
    "ES256": ("EC", "P-256"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}


def fitting(key_type: object, curve: object, own: object) -> frozenset[str]:
    """Names of algorithms for a key of this type, which may name its `own`."""
    suited = {name for name, fit in FITS.items() if fit == (key_type, curve or "")}
    return frozenset(suited) if own is None or (isinstance(own, str) and own in suited) else frozenset()


def _registry() -> JWSRegistry:
    """Knows no algorithm but ours, so that no header can ask for another."""
    registry = JWSRegistry(algorithms=list(FITS), strict_check_header=False)
    known = JWSRegistry.algorithms
    registry.algorithms = {name: known[name] for name in FITS} | {"EdDSA": known["Ed25519"]}
    registry.max_header_length = registry.max_payload_length = registry.max_signature_length = MOST_BYTES
    return registry


SIGNATURES = _registry()
