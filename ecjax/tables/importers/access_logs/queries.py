"""Requests to S3 that name a bucket or an object and mean a listing or something else of it, told by their queries."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.tables.importers.access_logs.names import query_begin

_SLASH, _EQUALS, _AND = 47, 61, 38
_U64 = np.uint64
_FNV, _PRIME = _U64(0xCBF29CE484222325), _U64(0x100000001B3)
_UNKNOWN, _NEUTRAL, _SUBRESOURCE, _VERSIONED_LISTING, _LISTING, _UPLOAD, _PART = range(7)
# parameters of Amazon S3's API by what they make of a request; beside them those that begin with x- and response-
_PARAMETERS = {
    _NEUTRAL: "versionId select-type id max-parts part-number-marker AWSAccessKeyId Signature Expires",
    _SUBRESOURCE: "accelerate acl analytics attributes cors delete encryption intelligent-tiering inventory legal-hold "
    "lifecycle location logging metrics notification object-lock ownershipControls policy policyStatus "
    "publicAccessBlock replication requestPayment restore retention select session tagging torrent uploads versioning "
    "versions website",
    _VERSIONED_LISTING: "list-type",
    _LISTING: "prefix delimiter marker max-keys encoding-type continuation-token start-after fetch-owner key-marker "
    "version-id-marker upload-id-marker max-uploads",
    _UPLOAD: "uploadId",
    _PART: "partNumber",
}


def _hash(name: str) -> int:
    state = int(_FNV)
    for byte in name.encode():
        state = (state ^ byte) * int(_PRIME) % 2**64
    return state


_KINDS = np.array([kind for kind, names in _PARAMETERS.items() for _ in names.split()])
_HASHES = np.array([_hash(name) for names in _PARAMETERS.values() for name in names.split()], np.uint64)
_RESPONSE = np.frombuffer(b"response-", np.uint8)


@njit()
def _kind(data, begin, end):
    """What the parameter of this name makes of a request."""
    if begin == end or (end - begin > 1 and (data[begin] | 32) == 120 and data[begin + 1] == 45):  # x-
        return _NEUTRAL
    state, same = _FNV, end - begin > _RESPONSE.shape[0]
    for place in range(begin, end):
        state = (state ^ _U64(data[place])) * _PRIME
        if place - begin < _RESPONSE.shape[0]:
            same = same and data[place] == _RESPONSE[place - begin]
    if same:
        return _NEUTRAL
    for number in range(_HASHES.shape[0]):
        if _HASHES[number] == state:
            return _KINDS[number]
    return _UNKNOWN


@njit()
def subresources(data, targets, queries, with_subresource):
    """Tell requests for a listing, an upload as such or a subresource from those for the bytes of an object.

    Other web servers have words like these in their queries, so that all parameters have to be S3's, those of
    subresources without a value, and those of listings after the path of a bucket.

    Args:
        data: (bytes,) uint8.
        targets: (rows, 2), paths that may have a query.
        queries: (rows, 2), where queries stand apart, or (0, 2).
        with_subresource: (rows,) bool, filled.

    References:
        Amazon S3 API Reference.
    """
    for row in range(targets.shape[0]):
        with_subresource[row] = False
        begin, end = targets[row, 0], targets[row, 1]
        if begin < 0:
            continue
        path_end = query_begin(data, begin, end)
        place, stop = path_end + 1, end
        if place >= stop and queries.shape[0] and queries[row, 0] >= 0:
            place, stop = queries[row, 0], queries[row, 1]
        if place >= stop:
            continue
        met = np.zeros(_PART + 1, np.bool_)
        while place < stop and not met[_UNKNOWN]:
            name = place
            while place < stop and data[place] != _EQUALS and data[place] != _AND:
                place += 1
            kind = _kind(data, name, place)
            value = place + 1
            while place < stop and data[place] != _AND:
                place += 1
            met[_UNKNOWN if kind == _SUBRESOURCE and place > value else kind] = True
            place += 1
        if met[_UNKNOWN]:
            continue
        slashes = 0
        for letter in range(begin + 1, path_end - 1):
            slashes += data[letter] == _SLASH
        with_subresource[row] = (
            met[_SUBRESOURCE]
            or met[_VERSIONED_LISTING]
            or (met[_LISTING] and slashes == 0)
            or (met[_UPLOAD] and not met[_PART])
        )
