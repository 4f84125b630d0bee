/* What the files of the native core share: statuses, exported functions, loads that know no byte order.
 *
 * The caller gives all memory and owns it. No function keeps state between calls, none allocates.
 * A structure that Python fills or reads is defined here, listed in version.c, and has its ctypes twin in
 * structs.py; library.py compares the sizes of both before it calls anything else.
 */
#ifndef TRACELANE_NATIVE_H
#define TRACELANE_NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* To be raised with every change of a function's arguments or of a structure, here and in structs.py. */
#define TL_VERSION 8

#define TL_API __attribute__((visibility("default")))

/* What a call returns. */
enum {
    TL_OK = 0,       /* all that was asked for is done */
    TL_NEED = 1,     /* a capacity does not suffice; nothing is lost, the call can be repeated with more */
    TL_STOPPED = 2,  /* the input is not accepted from some byte on, which the call names */
    TL_CANCELLED = 3 /* the caller's flag was set */
};

/* A little-endian load of 8 bytes at any address: the byte at the lowest address is the lowest of the value. */
static inline uint64_t tl_load64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

/* The same of 4 bytes. */
static inline uint32_t tl_load32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

/* ---- scan.c: JSON text of trace events to the columns of a batch ------------------------------------------- */

/* The columns that tl_scan writes, in the order of TABLES in core/read/columns.py; columns[] has one each. */
enum tl_column {
    TL_TIMED_PHASE, TL_TIMED_FLAGS, TL_TIMED_ORDINAL, TL_TIMED_TRACK, TL_TIMED_CATEGORY, TL_TIMED_NAME,
    TL_TIMED_START, TL_TIMED_DURATION,
    TL_FLOW_PHASE, TL_FLOW_FLAGS, TL_FLOW_ORDINAL, TL_FLOW_TRACK, TL_FLOW_CATEGORY, TL_FLOW_NAME,
    TL_FLOW_ID_KIND, TL_FLOW_ID_VALUE, TL_FLOW_START,
    TL_ASYNC_PHASE, TL_ASYNC_FLAGS, TL_ASYNC_ORDINAL, TL_ASYNC_TRACK, TL_ASYNC_CATEGORY, TL_ASYNC_NAME,
    TL_ASYNC_ID_KIND, TL_ASYNC_ID_VALUE, TL_ASYNC_START,
    TL_COUNTER_ORDINAL, TL_COUNTER_TRACK, TL_COUNTER_NAME, TL_COUNTER_SERIES, TL_COUNTER_ID_KIND,
    TL_COUNTER_ID_VALUE, TL_COUNTER_START, TL_COUNTER_VALUE,
    TL_BLOCK_OFFSET, TL_BLOCK_LENGTH, TL_BLOCK_ORDINAL, TL_BLOCK_COUNT, TL_BLOCK_REPAIRED,
    TL_META_ORDINAL, TL_META_OFFSET, TL_META_LENGTH, /* where the text of a metadata event stands, for Python */
    TL_COLUMNS
};

/* Tables: count[] and capacity[] have one entry each. The last two belong to the numbering, not to the batch. */
enum tl_table { TL_TIMED, TL_FLOWS, TL_ASYNCS, TL_COUNTERS, TL_BLOCKS, TL_META, TL_STRINGS, TL_TRACKS, TL_TABLES };

/* What tl_scan needs more of: one of the tables above, or */
enum { TL_NEED_BLOB = TL_TABLES, TL_NEED_TEXT };

/* counts[]: by the letter of the phase from 0 and from 128 on, then these. */
enum {
    TL_COUNT_PHASE = 0,          /* elements by phase */
    TL_COUNT_WITHOUT_TIME = 128, /* of them those without a usable time */
    TL_COUNT_NOT_OBJECTS = 256,
    TL_COUNT_MISSING_DURATIONS,
    TL_COUNT_NEGATIVE_DURATIONS,
    TL_COUNTS
};

/* Why tl_scan stopped; scan_native.py of core/read names those it tells apart. */
enum {
    TL_CLOSED = 1, /* at the bracket that closes the array */
    TL_UNUSUAL,    /* sound JSON that Python is to read: clamped times, numbers as texts, ... */
    TL_LONG,       /* an event of more than `longest` bytes */
    TL_NO_VALUE, TL_NO_KEY, TL_NO_COLON, TL_NO_COMMA, TL_BAD_NUMBER, TL_BAD_ESCAPE, TL_CONTROL, TL_BAD_UTF8,
    TL_SURROGATE, TL_TOO_DEEP, TL_TEXT_ENDS
};

#define TL_PAD 96       /* zero bytes that must stand behind the text: every read ahead ends in them */
#define TL_GAPS 256     /* entries of the table of gaps */
#define TL_GAP_TEXT 64  /* the longest gap that is remembered */
#define TL_MOST_KEYS 64 /* arguments that a table of promoted arguments may name */
#define TL_RESERVE 256  /* so many strings one event adds at most */
#define TL_BLOCK_SIZE (256 << 10)

/* The text between two values (`,\n    "ts": `) and what it means; see scan.c. */
struct tl_gap {
    uint8_t text[TL_GAP_TEXT + 8];
    uint64_t mask;    /* of the last, partial word */
    uint32_t opened;  /* where the arguments of the event begin, if they do */
    uint16_t next[2]; /* the gaps that followed last, behind the value */
    uint8_t words;    /* whole words of 8 bytes */
    uint8_t length;
    uint8_t does; /* see scan.c */
    uint8_t slot; /* what the value is */
    uint8_t from; /* where the text stands before the gap */
    uint8_t level; /* and behind the value */
};

/* One scan; all memory is the caller's. Places in the text are indices from its first byte. */
struct tl_scan {
    const uint8_t *text;   /* TL_PAD zero bytes follow it */
    int64_t offset;        /* of text[0] in the source */
    int64_t at;            /* in: where to begin, between two elements; out: where to go on */
    int64_t end;           /* how much text there is */
    int64_t limit;         /* elements that begin here or later are not read */
    int64_t longest;       /* events of more bytes are left to the caller */
    int64_t begin, stop;   /* out, if stopped: where the element begins (and, if TL_UNUSUAL, ends), the byte */
    const uint8_t *cancel; /* becomes 1 where the scan is not wanted any more */
    int64_t *progress;     /* bytes read so far are added here */
    int32_t is_last;       /* nothing follows the text */
    int32_t reason;        /* out: what is needed, or why it stopped */
    int32_t irregular;     /* out, if stopped: not exactly one comma stood before the element */
    uint32_t ordinal;      /* elements so far in the batch */

    void **columns;
    int64_t *count, *capacity, *counts;

    /* strings and tracks, numbered in order of first use in this table */
    uint8_t *blob;
    int64_t blob_used, blob_capacity;
    int64_t *string_offset; /* count + 1 of them */
    uint64_t *string_slots; /* high half of the hash, number + 1; a power of two of them */
    uint8_t *string_used;   /* 1: used in this batch */
    uint32_t *string_uses;  /* numbers in the order of their first use in this batch */
    uint32_t *track_pid, *track_tid;
    uint64_t *track_slots;
    uint8_t *track_used;
    uint32_t *track_uses;
    int64_t string_use_count, track_use_count;
    uint64_t string_mask, track_mask; /* slots - 1 */
    uint64_t seed[2];

    /* promoted arguments: keys by slot; a column's keys follow one another, the first that is there wins */
    const uint8_t *key_text;
    const int32_t *key_offset; /* keys + 1 */
    const uint8_t *key_owner;  /* slot -> column */
    const uint8_t *kinds;      /* column -> 'i', 'f' or 't' */
    int32_t keys;
    int32_t cname_column; /* the event's own cname; -1: none */
    int32_t promoted_columns;
    uint32_t **promoted_ordinals;
    void **promoted_values;
    int64_t *promoted_count; /* each column has room for as many entries as timed has */

    struct tl_gap *gaps; /* TL_GAPS; zero at first */
    int32_t gap_count;
    int32_t new_block; /* in: the next element begins a block */

    /* how times stand in the text: one of `ts` and `dur` is 10^time_digits ns, `ts` counts from the origin */
    int64_t origin_high;
    uint64_t origin_low; /* ns: origin_high * 2^64 + origin_low */
    int32_t time_digits;
    int32_t has_origin;
};

/* Read elements of an event array up to `limit`; see scan.c. */
TL_API int32_t tl_scan(struct tl_scan *scan);

/* Return the number of a string, and mark it as used in the batch; -1 where a capacity does not suffice. */
TL_API int64_t tl_number_string(struct tl_scan *scan, const uint8_t *text, int64_t length);

/* Return the number of a track, given the string numbers of the JSON texts of its pid and tid; likewise. */
TL_API int64_t tl_number_track(struct tl_scan *scan, uint32_t pid, uint32_t tid);

/* Fill the slots anew after they have grown. */
TL_API void tl_rehash(struct tl_scan *scan);

/* ---- inflate.c: deflated data to bytes ------------------------------------------------------------------------ */

#define TL_LENGTH_ROOM 2400 /* entries of the tables of codes; no code needs more than 2342 and 402 */
#define TL_DISTANCE_ROOM 416

/* A stream of deflated data being inflated; zero at first. All memory is the caller's. */
struct tl_inflate {
    const uint8_t *in;
    int64_t in_size; /* bytes */
    int64_t at;      /* in, out: the bit of `in` from which on is read */
    uint8_t *out;    /* what matches refer to, then room */
    int64_t first;   /* the first byte of `out` that a match may refer to */
    int64_t out_at;  /* in, out: where the next byte is written */
    int64_t out_end; /* nothing is written from here on */
    int64_t block;   /* out: the bit at which the last block begins that was begun in this call; -1: none */
    int64_t left;    /* bytes of a stored block that are still to come */
    int32_t mode;    /* 0: a block begins, 1: in codes, 2: in a stored block, 3: behind the last one */
    int32_t is_final;
    uint32_t lengths[TL_LENGTH_ROOM], distances[TL_DISTANCE_ROOM]; /* tables of the block's codes */
};

/* Inflate until the stream ends (TL_OK), the input or the room does (TL_NEED), or an error is met (TL_STOPPED). What
 * comes of a code that is not whole is left to the next call: bytes from at / 8 on are to be given again. */
TL_API int32_t tl_inflate(struct tl_inflate *s);

/* Read the header of a block alone, likewise. */
TL_API int32_t tl_inflate_header(struct tl_inflate *s);

/* Write the size of each structure that Python shares, in the order of structs.py, and return their number. */
TL_API uint32_t tl_struct_sizes(uint32_t *sizes, uint32_t capacity);

/* Return TL_VERSION of the sources that this library was made of. */
TL_API uint32_t tl_version(void);

#endif
