/* Deflated data (RFC 1951) to bytes, from any bit on, and stopping at any: what the C library and Python's zlib do
 * not tell is at which bit a symbol begins, and that is where somebody can begin to read later.
 *
 * A table of codes has an entry for each value of the next PRIMARY bits; longer codes go on in a table behind it.
 *
 *     31       30 .. 16                     14       13        12     11 .. 8           5 .. 0
 *     LITERAL  literal, base, or place of   SPECIAL  SUBTABLE  END    bits of the code  bits with the extra ones
 *              the table behind
 *
 * tl_inflate refuses at least what zlib refuses. The fast loop runs while neither end is near; symbol by symbol goes
 * on from there, and leaves a symbol that is not whole, or for which there is no room, to the next call.
 */
#include "native.h"

#define LENGTH_BITS 11
#define DISTANCE_BITS 8
#define FAST_IN 24   /* bytes that the fast loop reads ahead */
#define FAST_OUT 320 /* and writes at most in a round: three literals, a match and what is written beyond it */
#define LONGEST_CODE 15
#define LONGEST_MATCH 258

#define LITERAL UINT32_C(0x80000000)
#define SPECIAL UINT32_C(0x4000)
#define SUBTABLE UINT32_C(0x2000)
#define END UINT32_C(0x1000)
#define INVALID (SPECIAL | 1 << 8 | 1)

#define VALUE(entry) ((entry) >> 16 & 0x7FFF)
#define CODE_BITS(entry) ((entry) >> 8 & 15)
#define ALL_BITS(entry) ((entry) & 63)

enum { HEADER, CODES, STORED, ENDED };

static const uint16_t LENGTH_BASE[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t LENGTH_EXTRA[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t DISTANCE_BASE[30] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
                                           193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
static const uint8_t DISTANCE_EXTRA[30] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                           6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
static const uint8_t LENGTHS_ORDER[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

/* What an entry says of a symbol, without the length of its code. */
static uint32_t length_entry(uint32_t symbol)
{
    if (symbol < 256) {
        return LITERAL | symbol << 16;
    }
    if (symbol == 256) {
        return SPECIAL | END;
    }
    symbol -= 257;
    return symbol < 29 ? (uint32_t)LENGTH_BASE[symbol] << 16 | LENGTH_EXTRA[symbol] : SPECIAL;
}

static uint32_t distance_entry(uint32_t symbol)
{
    return symbol < 30 ? (uint32_t)DISTANCE_BASE[symbol] << 16 | DISTANCE_EXTRA[symbol] : SPECIAL;
}

static uint32_t plain_entry(uint32_t symbol)
{
    return symbol << 16;
}

/* Make the table of a code whose symbols have these lengths; 0 where zlib would refuse it. A code may lack a half only
 * where it has a single symbol, or none. */
static int make_table(uint32_t *table, uint32_t room, uint32_t primary, const uint8_t *lengths, uint32_t n,
                      uint32_t (*entry_of)(uint32_t), int may_lack)
{
    uint32_t count[LONGEST_CODE + 1] = {0}, first[LONGEST_CODE + 2];
    uint16_t sorted[288];
    for (uint32_t i = 0; i < n; i++) {
        count[lengths[i]]++;
    }
    count[0] = 0;
    uint32_t longest = LONGEST_CODE;
    while (longest && !count[longest]) {
        longest--;
    }
    int32_t left = 1;
    first[1] = 0;
    for (uint32_t bits = 1; bits <= LONGEST_CODE; bits++) {
        left = 2 * left - (int32_t)count[bits];
        if (left < 0) {
            return 0;
        }
        first[bits + 1] = first[bits] + count[bits];
    }
    if (left > 0 && !(may_lack && longest <= 1)) {
        return 0;
    }
    const uint32_t symbols = first[LONGEST_CODE + 1];
    for (uint32_t i = 0; i < n; i++) {
        if (lengths[i]) {
            sorted[first[lengths[i]]++] = (uint16_t)i;
        }
    }
    if (left > 0) {
        for (uint32_t i = 0; i < UINT32_C(1) << primary; i++) {
            table[i] = INVALID;
        }
    }
    const uint32_t mask = (UINT32_C(1) << primary) - 1;
    uint32_t used = mask + 1, code = 0, prefix = UINT32_MAX, begin = 0, below = 0; /* code: its first bit is the lowest */
    for (uint32_t i = 0; i < symbols; i++) {
        const uint32_t bits = lengths[sorted[i]], base = entry_of(sorted[i]);
        if (bits <= primary) {
            const uint32_t entry = base + (bits << 8 | bits);
            for (uint32_t at = code; at <= mask; at += UINT32_C(1) << bits) {
                table[at] = entry;
            }
        } else {
            if ((code & mask) != prefix) { /* a table for all codes that begin so */
                prefix = code & mask;
                begin = used;
                below = bits - primary;
                int32_t gap = 1 << below;
                while (below + primary < longest && (gap -= (int32_t)count[below + primary]) > 0) {
                    below++;
                    gap <<= 1;
                }
                used += UINT32_C(1) << below;
                if (used > room) {
                    return 0;
                }
                table[prefix] = SPECIAL | SUBTABLE | begin << 16 | below << 8 | primary;
            }
            const uint32_t rest = bits - primary, entry = base + (rest << 8 | rest);
            for (uint32_t at = code >> primary; at < UINT32_C(1) << below; at += UINT32_C(1) << rest) {
                table[begin + at] = entry;
            }
        }
        count[bits]--;
        uint32_t bit = UINT32_C(1) << (bits - 1); /* the next code, counted from its last bit */
        while (code & bit) {
            bit >>= 1;
        }
        code = bit ? (code & (bit - 1)) | bit : 0;
    }
    return 1;
}

/* At least 57 bits from a bit on, zeros behind the end. */
static inline uint64_t bits_from(const uint8_t *in, int64_t size, int64_t at)
{
    const int64_t byte = at >> 3;
    uint64_t value = 0;
    if (byte + 8 <= size) {
        value = tl_load64(in + byte);
    } else {
        for (int64_t i = 0; byte + i < size; i++) {
            value |= (uint64_t)in[byte + i] << 8 * i;
        }
    }
    return value >> (at & 7);
}

/* Read the header of a block; TL_NEED where it is not all there. */
static int read_header(struct tl_inflate *s)
{
    const int64_t end = 8 * s->in_size;
    int64_t at = s->at;
    uint64_t bits = bits_from(s->in, s->in_size, at);
    uint8_t lengths[286 + 30 + 138] = {0};
    if (at + 3 > end) {
        return TL_NEED;
    }
    const int32_t is_final = bits & 1, kind = bits >> 1 & 3;
    at += 3;
    if (kind == 0) {
        const int64_t byte = (at + 7) >> 3;
        if (byte + 4 > s->in_size) {
            return TL_NEED;
        }
        const uint32_t both = tl_load32(s->in + byte);
        if ((both & 0xFFFF) != (~both >> 16)) {
            return TL_STOPPED;
        }
        s->left = both & 0xFFFF;
        s->mode = STORED;
        at = 8 * (byte + 4);
    } else if (kind == 1) {
        uint8_t fixed[288];
        memset(fixed, 8, 144);
        memset(fixed + 144, 9, 112);
        memset(fixed + 256, 7, 24);
        memset(fixed + 280, 8, 8);
        make_table(s->lengths, TL_LENGTH_ROOM, LENGTH_BITS, fixed, 288, length_entry, 0);
        memset(fixed, 5, 32);
        make_table(s->distances, TL_DISTANCE_ROOM, DISTANCE_BITS, fixed, 32, distance_entry, 0);
        s->mode = CODES;
    } else if (kind == 2) {
        const uint32_t of_lengths = 257 + (bits >> 3 & 31), of_distances = 1 + (bits >> 8 & 31);
        const uint32_t of_code = 4 + (bits >> 13 & 15), all = of_lengths + of_distances;
        if (at + 14 > end) {
            return TL_NEED;
        }
        if (of_lengths > 286 || of_distances > 30) {
            return TL_STOPPED;
        }
        at += 14;
        uint8_t own[19] = {0};
        uint32_t table[1 << 7];
        for (uint32_t i = 0; i < of_code; i++, at += 3) {
            own[LENGTHS_ORDER[i]] = bits_from(s->in, s->in_size, at) & 7;
        }
        if (at > end) {
            return TL_NEED;
        }
        if (!make_table(table, 1 << 7, 7, own, 19, plain_entry, 0)) {
            return TL_STOPPED;
        }
        for (uint32_t i = 0; i < all;) {
            bits = bits_from(s->in, s->in_size, at);
            const uint32_t entry = table[bits & 127], symbol = VALUE(entry);
            bits >>= CODE_BITS(entry);
            at += CODE_BITS(entry);
            uint32_t times = 1;
            uint8_t length = (uint8_t)symbol;
            if (symbol >= 16) {
                length = symbol == 16 && i ? lengths[i - 1] : 0;
                times = symbol == 16 ? 3 + (bits & 3) : symbol == 17 ? 3 + (bits & 7) : 11 + (bits & 127);
                at += symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
            }
            if (at > end) {
                return TL_NEED;
            }
            if (i + times > all || (symbol == 16 && !i)) {
                return TL_STOPPED;
            }
            memset(lengths + i, length, times);
            i += times;
        }
        if (!lengths[256] ||
            !make_table(s->lengths, TL_LENGTH_ROOM, LENGTH_BITS, lengths, of_lengths, length_entry, 1) ||
            !make_table(s->distances, TL_DISTANCE_ROOM, DISTANCE_BITS, lengths + of_lengths, of_distances,
                        distance_entry, 1)) {
            return TL_STOPPED;
        }
        s->mode = CODES;
    } else {
        return TL_STOPPED;
    }
    s->block = s->at;
    s->at = at;
    s->is_final = is_final;
    return TL_OK;
}

static inline void copy8(uint8_t *to, const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, 8);
    memcpy(to, &value, 8);
}

static inline void copy16(uint8_t *to, const uint8_t *from)
{
    uint64_t value[2];
    memcpy(value, from, 16);
    memcpy(to, value, 16);
}

/* Copy a match; up to 15 bytes beyond it are written, too. */
static inline void copy_match(uint8_t *to, uint32_t distance, uint32_t length)
{
    const uint8_t *from = to - distance;
    uint8_t *const end = to + length;
    if (distance >= 16) {
        copy16(to, from);
        while ((to += 16) < end) {
            copy16(to, from += 16);
        }
    } else if (distance >= 8) {
        do {
            copy8(to, from);
            to += 8;
            from += 8;
        } while (to < end);
    } else if (distance == 1) {
        memset(to, *from, length);
    } else {
        do {
            *to++ = *from++;
        } while (to < end);
    }
}

#define REFILL() \
    do { \
        bits |= tl_load64(in) << count; \
        in += (63 - count) >> 3; \
        count |= 56; \
    } while (0)
#define DROP(n) (bits >>= (n), count -= (n))
#define NEXT_LENGTH() (lengths[bits & ((1 << LENGTH_BITS) - 1)])
/* The extra bits of an entry, whose code and extra bits are then dropped. */
#define EXTRA(entry) ((uint32_t)((bits & ((UINT64_C(1) << ALL_BITS(entry)) - 1)) >> CODE_BITS(entry)))

/* Inflate symbols while neither end is near; TL_OK at the end of the block, TL_NEED at one of the ends. */
static int fast_codes(struct tl_inflate *s)
{
    if (s->in_size < FAST_IN || s->out_end - s->out_at < FAST_OUT || s->at >> 3 > s->in_size - FAST_IN) {
        return TL_NEED;
    }
    const uint8_t *in = s->in + (s->at >> 3), *const last_in = s->in + s->in_size - FAST_IN;
    uint8_t *out = s->out + s->out_at, *const first = s->out + s->first, *const last_out = s->out + s->out_end - FAST_OUT;
    const uint32_t *const lengths = s->lengths, *const distances = s->distances;
    uint64_t bits = tl_load64(in) >> (s->at & 7);
    uint32_t count = 56 - (uint32_t)(s->at & 7); /* valid bits; those above are the right ones, too */
    in += 7;
    int status = TL_NEED;
    REFILL();
    uint32_t entry = NEXT_LENGTH();
    while (in <= last_in && out <= last_out) {
        if (entry & LITERAL) { /* of 56 bits each takes 11 at most here */
            DROP(ALL_BITS(entry));
            *out++ = (uint8_t)(entry >> 16);
            entry = NEXT_LENGTH();
            if (entry & LITERAL) {
                DROP(ALL_BITS(entry));
                *out++ = (uint8_t)(entry >> 16);
                entry = NEXT_LENGTH();
                if (entry & LITERAL) {
                    DROP(ALL_BITS(entry));
                    *out++ = (uint8_t)(entry >> 16);
                    REFILL();
                    entry = NEXT_LENGTH();
                    continue;
                }
            }
        }
        if (entry & SPECIAL) {
            if (entry & SUBTABLE) {
                DROP(LENGTH_BITS);
                entry = lengths[VALUE(entry) + (bits & ((UINT64_C(1) << CODE_BITS(entry)) - 1))];
            }
            if (entry & LITERAL) {
                DROP(ALL_BITS(entry));
                *out++ = (uint8_t)(entry >> 16);
                REFILL();
                entry = NEXT_LENGTH();
                continue;
            }
            if (entry & SPECIAL) {
                DROP(CODE_BITS(entry));
                status = entry & END ? TL_OK : TL_STOPPED;
                break;
            }
        }
        const uint32_t length = VALUE(entry) + EXTRA(entry);
        DROP(ALL_BITS(entry));
        REFILL();
        entry = distances[bits & ((1 << DISTANCE_BITS) - 1)];
        if (entry & SPECIAL) {
            if (entry & SUBTABLE) {
                DROP(DISTANCE_BITS);
                entry = distances[VALUE(entry) + (bits & ((UINT64_C(1) << CODE_BITS(entry)) - 1))];
            }
            if (entry & SPECIAL) {
                status = TL_STOPPED;
                break;
            }
        }
        const uint32_t distance = VALUE(entry) + EXTRA(entry);
        DROP(ALL_BITS(entry));
        if (distance > out - first) {
            status = TL_STOPPED;
            break;
        }
        REFILL();
        entry = NEXT_LENGTH(); /* is on its way while the match is copied */
        copy_match(out, distance, length);
        out += length;
    }
    s->at = 8 * (in - s->in) - count;
    s->out_at = out - s->out;
    return status;
}

/* The entry of the code at the lowest of these bits; its bits are added to `used`, the extra ones not. */
static inline uint32_t entry_at(const uint32_t *table, uint32_t primary, uint64_t bits, uint32_t *used)
{
    uint32_t entry = table[bits & ((UINT64_C(1) << primary) - 1)];
    if (entry & SUBTABLE) {
        entry = table[VALUE(entry) + (bits >> primary & ((UINT64_C(1) << CODE_BITS(entry)) - 1))];
        *used += primary;
    }
    *used += CODE_BITS(entry);
    return entry;
}

/* The same symbol by symbol, up to the ends. */
static int slow_codes(struct tl_inflate *s)
{
    const int64_t end = 8 * s->in_size;
    for (;;) {
        const uint64_t bits = bits_from(s->in, s->in_size, s->at);
        uint32_t used = 0, more, length;
        uint32_t entry = entry_at(s->lengths, LENGTH_BITS, bits, &used);
        if (entry & LITERAL) {
            if (s->at + used > end || s->out_at >= s->out_end) {
                return TL_NEED;
            }
            s->out[s->out_at++] = (uint8_t)(entry >> 16);
            s->at += used;
            continue;
        }
        if (s->at + used > end) {
            return TL_NEED;
        }
        if (entry & SPECIAL) {
            s->at += used;
            return entry & END ? TL_OK : TL_STOPPED;
        }
        more = ALL_BITS(entry) - CODE_BITS(entry);
        length = VALUE(entry) + (uint32_t)(bits >> used & ((UINT64_C(1) << more) - 1));
        used += more; /* 20 at most: of 57 bits there are enough for the distance */
        entry = entry_at(s->distances, DISTANCE_BITS, bits >> used, &used);
        more = ALL_BITS(entry) - CODE_BITS(entry);
        if (s->at + used + more > end) {
            return TL_NEED;
        }
        if (entry & SPECIAL) {
            return TL_STOPPED;
        }
        const uint32_t distance = VALUE(entry) + (uint32_t)(bits >> used & ((UINT64_C(1) << more) - 1));
        if (distance > s->out_at - s->first) {
            return TL_STOPPED;
        }
        if (length > s->out_end - s->out_at) {
            return TL_NEED;
        }
        uint8_t *const out = s->out + s->out_at;
        for (uint32_t i = 0; i < length; i++) {
            out[i] = out[(int64_t)i - distance];
        }
        s->out_at += length;
        s->at += used + more;
    }
}

int32_t tl_inflate_header(struct tl_inflate *s)
{
    return read_header(s);
}

int32_t tl_inflate(struct tl_inflate *s)
{
    s->block = -1;
    for (;;) {
        int status;
        if (s->mode == HEADER) {
            status = read_header(s);
            if (status != TL_OK) {
                return status;
            }
        } else if (s->mode == STORED) {
            const int64_t byte = s->at >> 3; /* blocks of bytes begin at one */
            int64_t size = s->in_size - byte;
            size = size < s->left ? size : s->left;
            size = size < s->out_end - s->out_at ? size : s->out_end - s->out_at;
            if (size > 0) {
                memcpy(s->out + s->out_at, s->in + byte, (size_t)size);
                s->out_at += size;
                s->left -= size;
                s->at += 8 * size;
            }
            if (s->left) {
                return TL_NEED;
            }
            s->mode = s->is_final ? ENDED : HEADER;
        } else if (s->mode == CODES) {
            status = fast_codes(s);
            if (status == TL_NEED) {
                status = slow_codes(s);
            }
            if (status != TL_OK) {
                return status;
            }
            s->mode = s->is_final ? ENDED : HEADER;
        } else {
            return s->mode == ENDED ? TL_OK : TL_STOPPED;
        }
    }
}
