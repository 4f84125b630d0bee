/* JSON text of trace events to the columns of a batch.
 *
 * The text is the inside of an event array. It is read strictly (RFC 8259, UTF-8, no lone surrogates), each byte
 * about once, and nothing is built of what no column holds. An event is first looked over: where the values of
 * the keys stand that count, and whether all of it is JSON. Only when its closing brace has been met is anything
 * written (`write_event`), so that an event that is refused, cut off by the end of the text, or too large for a
 * capacity leaves no trace but strings that nothing refers to, and can be read again.
 *
 * What keeps it fast is that writers repeat themselves. The text between one value and the next (a *gap*, such as
 * `,\n    "ts": `) is remembered with its meaning, and with the two gaps that followed last behind its value.
 * After a value those two are compared by whole words; if one fits, neither blanks nor a key need to be looked at.
 * In real traces 97 of 100 gaps fit, which saves a sixth of the time.
 *
 * TL_PAD zero bytes stand behind the text. A zero is no JSON outside of strings and no control character may
 * stand in one, so every loop ends there by itself and no loop looks for the end: a fault at or behind it means
 * that the text ends too soon.
 */
#include "native.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

#define ONES 0x0101010101010101u
#define HIGHS 0x8080808080808080u
#define TIME_LIMIT (((i64)1 << 62) - 1) /* ns; times beyond ± this are clamped, which Python does */

enum {
    DEEPEST = 512,          /* brackets within an event */
    DEEPEST_TEXT = 64,      /* brackets within a value that becomes a JSON text */
    MAX_DIGITS = 4300,     /* of a number, as Python has it */
    MAX_SERIES = 64,       /* of one counter event */
    CANCEL_BYTES = 256 << 10
};

/* ---- values ---------------------------------------------------------------------------------------------- */

enum kind { ABSENT, NIL, FALSE, TRUE, INTEGER, REAL, STRING, LIST, OBJECT };

/* Where a value stands in the text: strings without their quotes, all others as they are. */
struct value {
    const u8 *at;
    i64 length;
    u8 kind;
    u8 escaped; /* a string with a backslash in it */
};

/* Keys of an event that count. Behind them: arguments by slot, and what only has to be JSON. */
enum slot { PH, NAME, CAT, PID, TID, TS, DUR, ID, ID2, SCOPE, BP, S, CNAME, BIND_ID, ARGS, ATTR, EVENT_SLOTS };
enum { ARGUMENT = 32, SKIPPED = 255 };

static const char *const EVENT_KEYS[EVENT_SLOTS] = {
    "ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "id2", "scope", "bp", "s", "cname", "bind_id",
    "args", "attr"};

/* An event as it has been looked over. Values count where their bit is set, so that nothing has to be cleared. */
struct event {
    u32 seen;
    u64 arguments_seen;
    const u8 *begin, *arguments; /* its brace; behind the brace of its arguments, or 0 */
    int irregular, objects;      /* see tl_scan; how many of args and attr are objects or repeated */
    i64 ns[2];                   /* of TS and DUR */
    u8 wide[2];                  /* whether that is beyond TIME_LIMIT */
    struct value value[EVENT_SLOTS];
    struct value argument[TL_MOST_KEYS];
};

struct reader {
    struct tl_scan *scan;
    const u8 *fault; /* where and why something was not accepted */
    int reason;
    struct event event;
    u32 category, pid, tid, track; /* numbers of the event before, or 0 */
};

static const u8 *refuse(struct reader *reader, const u8 *at, int reason)
{
    reader->fault = at;
    reader->reason = reason;
    return 0;
}

static inline const u8 *skip_blanks(const u8 *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') {
        at++;
    }
    return at;
}

static inline int is_digit(u8 byte)
{
    return (u8)(byte - '0') <= 9;
}

/* Whether bytes with their high bits set, of which there is at least one, are UTF-8; the first that is not. */
static const u8 *not_utf8(const u8 *at, const u8 *end)
{
    while (at < end) {
        u8 lead = *at;
        int more;
        if (lead < 0x80) {
            at++;
            continue;
        }
        more = lead < 0xC2 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : lead < 0xF5 ? 3 : 0;
        if (!more || end - at <= more) {
            return at;
        }
        /* neither overlong forms nor surrogates nor beyond U+10FFFF */
        if ((lead == 0xE0 && at[1] < 0xA0) || (lead == 0xED && at[1] > 0x9F) || (lead == 0xF0 && at[1] < 0x90) ||
            (lead == 0xF4 && at[1] > 0x8F)) {
            return at;
        }
        for (int i = 1; i <= more; i++) {
            if ((at[i] & 0xC0) != 0x80) {
                return at;
            }
        }
        at += more + 1;
    }
    return 0;
}

/* The value of four hexadecimal digits, or -1 - i where the i-th is none. */
static int hexadecimal(const u8 *at)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        u8 lower = at[i] | 32;
        int digit = is_digit(at[i]) ? at[i] - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
        if (digit < 0) {
            return -1 - i;
        }
        value = value << 4 | digit;
    }
    return value;
}

/* Pass over an escape, from its backslash on. A surrogate must be one of a pair. */
static const u8 *escape(struct reader *reader, const u8 *at)
{
    int code, low;
    switch (at[1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        return at + 2;
    case 'u':
        code = hexadecimal(at + 2);
        if (code < 0) {
            return refuse(reader, at + 1 - code, TL_BAD_ESCAPE);
        }
        if (code < 0xD800 || code > 0xDFFF) {
            return at + 6;
        }
        if (code > 0xDBFF) {
            return refuse(reader, at, TL_SURROGATE);
        }
        if (at[6] != '\\' || at[7] != 'u') {
            return refuse(reader, at[6] == '\\' ? at + 7 : at + 6, TL_SURROGATE);
        }
        low = hexadecimal(at + 8);
        if (low < 0) {
            return refuse(reader, at + 7 - low, TL_BAD_ESCAPE);
        }
        return low >= 0xDC00 && low <= 0xDFFF ? at + 12 : refuse(reader, at, TL_SURROGATE);
    default:
        return refuse(reader, at + 1, TL_BAD_ESCAPE);
    }
}

/* Read a string from behind its opening quote; return the place behind the closing one. Eight bytes at a time:
 * in a word the lowest bit that is set in `stops` belongs to the first quote, backslash or control character
 * (carries of a subtraction reach only bytes above a true one). */
static inline const u8 *read_string(struct reader *reader, const u8 *at, struct value *value)
{
    u64 high = 0;
    value->at = at;
    value->kind = STRING;
    value->escaped = 0;
    for (;;) {
        u64 word = tl_load64(at);
        u64 quote = word ^ ONES * '"', backslash = word ^ ONES * '\\';
        u64 stops = ((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash) | ((word - ONES * 32) & ~word);
        stops &= HIGHS;
        if (!stops) {
            high |= word;
            at += 8;
            continue;
        }
        unsigned before = (unsigned)__builtin_ctzll(stops) & ~7u;
        high |= word & (((u64)1 << before) - 1);
        at += before >> 3;
        if (*at == '"') {
            break;
        }
        if (*at != '\\') {
            return refuse(reader, at, TL_CONTROL);
        }
        value->escaped = 1;
        at = escape(reader, at);
        if (!at) {
            return 0;
        }
    }
    value->length = at - value->at;
    if (high & HIGHS) {
        const u8 *bad = not_utf8(value->at, at);
        if (bad) {
            return refuse(reader, bad, TL_BAD_UTF8);
        }
    }
    return at + 1;
}

static inline const u8 *read_number(struct reader *reader, const u8 *at, struct value *value)
{
    value->at = at;
    value->kind = INTEGER;
    at += *at == '-';
    if (*at == '0') {
        at++;
    } else if (is_digit(*at)) {
        do {
            at++;
        } while (is_digit(*at));
    } else {
        return refuse(reader, at, TL_BAD_NUMBER);
    }
    if (*at == '.') {
        value->kind = REAL;
        if (!is_digit(*++at)) {
            return refuse(reader, at, TL_BAD_NUMBER);
        }
        do {
            at++;
        } while (is_digit(*at));
    }
    if ((*at | 32) == 'e') {
        value->kind = REAL;
        at++;
        at += *at == '-' || *at == '+';
        if (!is_digit(*at)) {
            return refuse(reader, at, TL_BAD_NUMBER);
        }
        do {
            at++;
        } while (is_digit(*at));
    }
    value->length = at - value->at;
    return value->length - (value->kind == INTEGER && *value->at == '-') > MAX_DIGITS ? refuse(reader, value->at, TL_BAD_NUMBER) : at;
}

static const u8 *read_word(struct reader *reader, const u8 *at, struct value *value)
{
    const char *word = *at == 't' ? "true" : *at == 'f' ? "false" : "null";
    value->at = at;
    value->kind = *at == 't' ? TRUE : *at == 'f' ? FALSE : NIL;
    for (; *word; word++, at++) {
        if (*at != (u8)*word) {
            return refuse(reader, at, TL_NO_VALUE);
        }
    }
    value->length = at - value->at;
    return at;
}

/* Read a key from its quote to the place where its value begins. */
static const u8 *read_key(struct reader *reader, const u8 *at, struct value *key)
{
    if (*at != '"') {
        return refuse(reader, at, TL_NO_KEY);
    }
    at = read_string(reader, at + 1, key);
    if (!at) {
        return 0;
    }
    at = skip_blanks(at);
    return *at == ':' ? skip_blanks(at + 1) : refuse(reader, at, TL_NO_COLON);
}

static const u8 *read_container(struct reader *reader, const u8 *at, struct value *value);

static inline const u8 *read_value(struct reader *reader, const u8 *at, struct value *value)
{
    switch (*at) {
    case '"':
        return read_string(reader, at + 1, value);
    case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
        return read_number(reader, at, value);
    case 't': case 'f': case 'n':
        return read_word(reader, at, value);
    case '{': case '[':
        return read_container(reader, at, value);
    default:
        return refuse(reader, at, TL_NO_VALUE);
    }
}

/* Read a list or an object, without recursion; a bit per level tells objects from lists. */
static const u8 *read_container(struct reader *reader, const u8 *at, struct value *value)
{
    u64 objects[DEEPEST / 64];
    struct value inner;
    int depth = 0;
    value->at = at;
    value->kind = *at == '{' ? OBJECT : LIST;
    for (;;) {
        if (*at == '{' || *at == '[') {
            u64 bit = (u64)1 << (depth & 63);
            int is_object = *at == '{';
            if (depth == DEEPEST) {
                return refuse(reader, at, TL_TOO_DEEP);
            }
            objects[depth >> 6] = is_object ? objects[depth >> 6] | bit : objects[depth >> 6] & ~bit;
            depth++;
            at = skip_blanks(at + 1);
            if (*at != (is_object ? '}' : ']')) {
                if (is_object && !(at = read_key(reader, at, &inner))) {
                    return 0;
                }
                continue;
            }
            at++;
            depth--;
        } else if (!(at = read_value(reader, at, &inner))) {
            return 0;
        }
        for (;;) { /* behind a value: close what ends here, and go to the next value */
            if (!depth) {
                value->length = at - value->at;
                return at;
            }
            int is_object = objects[(depth - 1) >> 6] >> ((depth - 1) & 63) & 1;
            at = skip_blanks(at);
            if (*at == ',') {
                at = skip_blanks(at + 1);
                if (is_object && !(at = read_key(reader, at, &inner))) {
                    return 0;
                }
                break;
            }
            if (*at != (is_object ? '}' : ']')) {
                return refuse(reader, at, TL_NO_COMMA);
            }
            at++;
            depth--;
        }
    }
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

static const u64 POWERS[20] = {
    1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u,
    100000000000u, 1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u,
    100000000000000000u, 1000000000000000000u, 10000000000000000000u};

/* A decimal number: digits * 10^exponent, and what of its digits did not fit. */
struct decimal {
    u64 digits;     /* below 10^19 */
    int exponent;
    int next, rest; /* the first digit that was left out; whether any behind it is not 0 */
    int negative, whole_left_out;
    int exponent_digits; /* 0: there is no exponent */
};

/* Take a number apart, of which read_number is the judge; return the place behind its last digit. */
static inline const u8 *take_apart(const u8 *at, struct decimal *number)
{
    u64 digits = 0;
    int decimals = 0, left_out = 0, next = 0, rest = 0;
    number->negative = *at == '-';
    at += number->negative;
    for (; is_digit(*at); at++) {
        if (digits < POWERS[18]) {
            digits = digits * 10 + (*at - '0');
        } else if (left_out++) {
            rest |= *at - '0';
        } else {
            next = *at - '0';
        }
    }
    number->whole_left_out = left_out;
    if (*at == '.') {
        for (at++; is_digit(*at); at++) {
            if (digits < POWERS[18] && !left_out) {
                digits = digits * 10 + (*at - '0');
                decimals++;
            } else if (left_out++) {
                rest |= *at - '0';
            } else {
                next = *at - '0';
            }
        }
    }
    number->digits = digits;
    number->exponent = number->whole_left_out - decimals;
    number->next = next;
    number->rest = rest;
    number->exponent_digits = 0;
    if ((*at | 32) == 'e') {
        int exponent = 0, negative = at[1] == '-';
        at += 1 + (at[1] == '-' || at[1] == '+');
        number->exponent_digits = 1; /* at least, if this is a number */
        for (; is_digit(*at); at++, number->exponent_digits++) {
            exponent = exponent < 100000 ? exponent * 10 + (*at - '0') : exponent;
        }
        number->exponent += negative ? -exponent : exponent;
    }
    return at;
}

/* The ns from an origin to the `ts` that a number means, exactly, rounded half to even as it is (an origin is
 * even); 0 where Python is to say what it means, or it is beyond TIME_LIMIT. */
static int from_origin(const struct tl_scan *scan, const struct decimal *number, i64 *result)
{
    int scale = number->exponent + scan->time_digits;
    u128 ns = number->digits;
    i128 origin = (i128)((u128)(u64)scan->origin_high << 64 | scan->origin_low);
    if (number->whole_left_out || scale > 19 || scale < -19 || (scale && (number->next || number->rest))) {
        return 0;
    }
    if (scale >= 0) {
        ns *= POWERS[scale]; /* below 10^38 */
        ns += number->next > 5 || (number->next == 5 && (number->rest || (ns & 1)));
    } else {
        u64 power = POWERS[-scale], remainder = (u64)(ns % power);
        ns /= power;
        ns += remainder > power - remainder || (remainder && remainder == power - remainder && (ns & 1));
    }
    i128 difference = (number->negative ? -(i128)ns : (i128)ns) - origin;
    *result = (i64)difference;
    return difference >= -TIME_LIMIT && difference <= TIME_LIMIT;
}

/* Read `ts` or `dur` as ns, exactly, rounded half to even; in one pass over the digits, as nearly all are
 * plain. */
static inline const u8 *read_time(struct reader *reader, const u8 *at, struct value *value, int which)
{
    struct event *event = &reader->event;
    struct decimal number;
    const u8 *end;
    if (*at != '-' && !is_digit(*at)) {
        return read_value(reader, at, value);
    }
    end = take_apart(at, &number);
    if (*at == '-' || *at == '0' || number.exponent_digits || end[-1] == '.' || end - at > 30) {
        end = read_number(reader, at, value); /* which says what is wrong with it, if anything is */
        if (!end) {
            return 0;
        }
    } else {
        value->at = at;
        value->length = end - at;
        value->kind = INTEGER;
    }
    event->wide[which] = 1;
    if (number.exponent_digits > 6) {
        return end; /* whatever that may mean, Python says it */
    }
    if (which == 0 && reader->scan->has_origin) {
        event->wide[0] = !from_origin(reader->scan, &number, &event->ns[0]);
        return end;
    }
    int scale = number.exponent + reader->scan->time_digits;
    u64 ns = number.digits;
    if (scale >= 0 && ns) {
        if (number.whole_left_out || scale > 19 || ns > (u64)TIME_LIMIT / POWERS[scale]) {
            return end;
        }
        ns *= POWERS[scale];
        ns += number.next > 5 || (number.next == 5 && (number.rest || (ns & 1))); /* 19 digits and a decimal */
    } else if (scale < 0) {
        u64 power = scale >= -19 ? POWERS[-scale] : 0;
        u64 remainder = power ? ns % power : 0;
        int more = number.next || number.rest;
        ns = power ? ns / power : 0; /* less than 10^19 / 10^20 */
        ns += remainder > power - remainder || (remainder && remainder == power - remainder && (more || (ns & 1)));
    }
    if (ns > (u64)TIME_LIMIT) {
        return end;
    }
    event->wide[which] = 0;
    event->ns[which] = number.negative ? -(i64)ns : (i64)ns;
    return end;
}

/* The integer that a number means, if it has 64 bits. */
static int to_integer(const u8 *at, i64 length, i64 *result)
{
    const u8 *end = at + length;
    int negative = *at == '-';
    u64 value = 0;
    for (at += negative || *at == '+'; at < end; at++) {
        u64 digit = (u64)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return 0;
        }
        value = value * 10 + digit;
    }
    if (value > (u64)INT64_MAX + (u64)negative) {
        return 0;
    }
    *result = negative ? (i64)(0 - value) : (i64)value;
    return 1;
}

/* mantissa * 2^exponent as a double, rounded half to even; `sticky`: a little more than that. */
static double to_double(u128 mantissa, int exponent, int sticky, int negative)
{
    u64 upper = (u64)(mantissa >> 64);
    int bits = upper ? 128 - __builtin_clzll(upper) : 64 - __builtin_clzll((u64)mantissa);
    double result;
    if (bits > 53) {
        int drop = bits - 53;
        u128 half = (u128)1 << (drop - 1), low = mantissa & (((u128)1 << drop) - 1);
        mantissa >>= drop;
        exponent += drop;
        if (low > half || (low == half && (sticky || (mantissa & 1)))) {
            mantissa++;
            if (mantissa >> 53) {
                mantissa >>= 1;
                exponent++;
            }
        }
    } else {
        mantissa <<= 53 - bits;
        exponent -= 53 - bits;
    }
    u64 raw = ((u64)mantissa & (((u64)1 << 52) - 1)) | (u64)(exponent + 52 + 1023) << 52 | (u64)negative << 63;
    memcpy(&result, &raw, sizeof result);
    return result;
}

/* The double nearest to a number: 1 if that was found, 0 if it takes more digits or a larger exponent than are
 * worth the code. m * 10^e with 19 digits and |e| <= 19 is a product or a quotient of whole numbers, of which 128
 * bits and whether anything remains are enough to round rightly. */
static int to_real(const struct value *value, double *result)
{
    struct decimal number;
    take_apart(value->at, &number);
    if (number.next || number.rest || number.exponent > 19 || number.exponent < -19) {
        return 0;
    }
    if (!number.digits) {
        u64 raw = (u64)number.negative << 63;
        if (value->kind == INTEGER) {
            raw = 0;
        }
        memcpy(result, &raw, sizeof raw);
    } else if (number.exponent >= 0) {
        *result = to_double((u128)number.digits * POWERS[number.exponent], 0, 0, number.negative);
    } else {
        int shift = __builtin_clzll(number.digits);
        u128 numerator = (u128)(number.digits << shift) << 64;
        u64 power = POWERS[-number.exponent];
        *result = to_double(numerator / power, -shift - 64, numerator % power != 0, number.negative);
    }
    return 1;
}

/* ---- strings and tracks by number ------------------------------------------------------------------------ */

static inline u64 fold(u64 a, u64 b)
{
    u128 product = (u128)a * b;
    return (u64)product ^ (u64)(product >> 64);
}

/* A hash with a secret, so that nobody can write names that all fall into one slot. It decides nothing: strings
 * are compared. */
static inline u64 hash_of(const struct tl_scan *scan, const u8 *text, i64 length)
{
    u64 hash = scan->seed[0], a, b;
    i64 left = length;
    for (; left > 16; left -= 16, text += 16) {
        hash = fold(tl_load64(text) ^ scan->seed[1], tl_load64(text + 8) ^ hash);
    }
    if (left >= 8) {
        a = tl_load64(text);
        b = tl_load64(text + left - 8);
    } else if (left >= 4) {
        a = tl_load32(text);
        b = tl_load32(text + left - 4);
    } else {
        a = left ? (u64)text[0] << 16 | (u64)text[left >> 1] << 8 | text[left - 1] : 0;
        b = 0;
    }
    return fold(scan->seed[1] ^ (u64)length, fold(a ^ scan->seed[1], b ^ hash));
}

static inline u32 used_string(struct tl_scan *scan, u32 number)
{
    if (!scan->string_used[number]) {
        scan->string_used[number] = 1;
        scan->string_uses[scan->string_use_count++] = number;
    }
    return number;
}

/* Return the number of a text that may stand at the end of the blob already. The caller has seen to the room. */
static u32 number_of(struct tl_scan *scan, const u8 *text, i64 length)
{
    u64 hash, slot, mark;
    if (!length) {
        return 0;
    }
    hash = hash_of(scan, text, length);
    mark = hash & ~(u64)0xFFFFFFFF;
    for (slot = hash & scan->string_mask; scan->string_slots[slot]; slot = (slot + 1) & scan->string_mask) {
        u64 entry = scan->string_slots[slot];
        if ((entry ^ mark) >> 32) {
            continue;
        }
        u32 number = (u32)entry - 1;
        i64 offset = scan->string_offset[number];
        if (scan->string_offset[number + 1] - offset == length && !memcmp(scan->blob + offset, text, (size_t)length)) {
            return used_string(scan, number);
        }
    }
    u32 number = (u32)scan->count[TL_STRINGS]++;
    if (text != scan->blob + scan->blob_used) {
        memcpy(scan->blob + scan->blob_used, text, (size_t)length);
    }
    scan->blob_used += length;
    scan->string_offset[number + 1] = scan->blob_used;
    scan->string_slots[slot] = mark | (number + 1);
    return used_string(scan, number);
}

/* Return the number of a track, which is likely to be that of the event `before`. */
static u32 number_of_track(struct tl_scan *scan, u32 pid, u32 tid, u32 before)
{
    if (scan->count[TL_TRACKS] && scan->track_used[before] && scan->track_pid[before] == pid &&
        scan->track_tid[before] == tid) {
        return before;
    }
    u64 hash = fold(((u64)pid << 32 | tid) ^ scan->seed[0], scan->seed[1]);
    u64 mark = hash & ~(u64)0xFFFFFFFF, slot;
    u32 number;
    for (slot = hash & scan->track_mask; scan->track_slots[slot]; slot = (slot + 1) & scan->track_mask) {
        u64 entry = scan->track_slots[slot];
        number = (u32)entry - 1;
        if (!((entry ^ mark) >> 32) && scan->track_pid[number] == pid && scan->track_tid[number] == tid) {
            goto known;
        }
    }
    number = (u32)scan->count[TL_TRACKS]++;
    scan->track_pid[number] = pid;
    scan->track_tid[number] = tid;
    scan->track_slots[slot] = mark | (number + 1);
known:
    if (!scan->track_used[number]) {
        scan->track_used[number] = 1;
        scan->track_uses[scan->track_use_count++] = number;
    }
    return number;
}

/* Write the string that a text with escapes means to the end of the blob; return how long it is. */
static i64 unescape(const struct value *value, u8 *to)
{
    const u8 *at = value->at, *end = value->at + value->length;
    u8 *begin = to;
    while (at < end) {
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        u8 letter = at[1];
        at += 2;
        if (letter != 'u') {
            *to++ = letter == 'b' ? '\b' : letter == 'f' ? '\f' : letter == 'n' ? '\n'
                  : letter == 'r' ? '\r' : letter == 't' ? '\t' : letter;
            continue;
        }
        u32 code = (u32)hexadecimal(at);
        at += 4;
        if (code >= 0xD800 && code < 0xDC00) {
            code = 0x10000 + ((code - 0xD800) << 10) + ((u32)hexadecimal(at + 2) - 0xDC00);
            at += 6;
        }
        if (code < 0x80) {
            *to++ = (u8)code;
            continue;
        }
        if (code < 0x800) {
            *to++ = (u8)(0xC0 | code >> 6);
        } else {
            if (code < 0x10000) {
                *to++ = (u8)(0xE0 | code >> 12);
            } else {
                *to++ = (u8)(0xF0 | code >> 18);
                *to++ = (u8)(0x80 | (code >> 12 & 63));
            }
            *to++ = (u8)(0x80 | (code >> 6 & 63));
        }
        *to++ = (u8)(0x80 | (code & 63));
    }
    return to - begin;
}

static u32 number_of_string(struct tl_scan *scan, const struct value *value)
{
    u8 *tail = scan->blob + scan->blob_used;
    if (value->escaped) {
        return number_of(scan, tail, unescape(value, tail));
    }
    return number_of(scan, value->at, value->length);
}

/* Whether a real number is written as orjson writes it: up to 15 digits without needless zeros are the shortest
 * text of their double, and from a thousandth on no exponent is used. */
static int is_shortest(const u8 *at, i64 length)
{
    const u8 *end = at + length;
    at += *at == '-';
    const u8 *dot = memchr(at, '.', (size_t)(end - at));
    if (!dot || end - at > 16 || memchr(at, 'e', (size_t)(end - at)) || memchr(at, 'E', (size_t)(end - at))) {
        return 0;
    }
    if (end[-1] == '0' && (end - dot != 2 || (dot - at == 1 && *at == '0'))) {
        return 0; /* 1.50, and 0.0, which may be -0.0 */
    }
    return *at != '0' || end - dot < 3 || dot[1] != '0' || dot[2] != '0';
}

/* Write a value's JSON text without blanks, as Python would write it; return how long it is, or -1 where that
 * takes more than copying: escapes, objects (keys may be doubled), numbers that are not written the shortest way. */
static i64 copy_json(const struct value *value, u8 *to)
{
    const u8 *at = value->at, *end = at + value->length;
    u8 *begin = to;
    int depth = 0;
    if (value->kind == STRING) {
        if (value->escaped) {
            return -1;
        }
        memcpy(to, at - 1, (size_t)value->length + 2);
        return value->length + 2;
    }
    if (value->kind == OBJECT) {
        return -1;
    }
    /* Byte by byte: these texts are lists of sizes, and a call of memcpy for each of their tokens takes longer. */
    while (at < end) {
        const u8 *from = at;
        switch (*at) {
        case ' ': case '\n': case '\r': case '\t':
            at++;
            continue;
        case '{':
            return -1;
        case '[':
            if (++depth > DEEPEST_TEXT) {
                return -1;
            }
            *to++ = *at++;
            continue;
        case ']':
            depth--;
            *to++ = *at++;
            continue;
        case '"':
            do {
                if (*at == '\\') {
                    return -1;
                }
                *to++ = *at++;
            } while (*at != '"');
            *to++ = *at++;
            continue;
        case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
        {
            int is_real = 0;
            do {
                is_real |= !is_digit(*at) && at > from;
                *to++ = *at++;
            } while (at < end && (is_digit(*at) || *at == '.' || (*at | 32) == 'e' || *at == '-' || *at == '+'));
            if (is_real ? !is_shortest(from, at - from) : at - from == 2 && from[0] == '-' && from[1] == '0') {
                return -1;
            }
            continue;
        }
        default: /* commas and words */
            *to++ = *at++;
        }
    }
    return to - begin;
}

/* The number of a value's JSON text; -1 where Python is to write it. */
static i64 number_of_json(struct tl_scan *scan, const struct value *value)
{
    u8 *tail = scan->blob + scan->blob_used;
    i64 length;
    if (value->kind == INTEGER && (value->length != 2 || value->at[1] != '0')) {
        return number_of(scan, value->at, value->length);
    }
    if (value->kind == STRING && !value->escaped) {
        return number_of(scan, value->at - 1, value->length + 2);
    }
    length = copy_json(value, tail);
    return length < 0 ? -1 : (i64)number_of(scan, tail, length);
}

/* The number of a text: a string's own, of null none, of other values that of their JSON text. */
static i64 number_of_text(struct tl_scan *scan, const struct value *value)
{
    if (value->kind == STRING) {
        return number_of_string(scan, value);
    }
    return value->kind <= NIL ? 0 : number_of_json(scan, value);
}

/* The same for a text that mostly is that of the event before: of a category, which is a string, or of a pid or tid,
 * which mostly is an integer (`kind`). Comparing is quicker than a hash. */
static i64 number_as_before(struct tl_scan *scan, const struct value *value, u8 kind, u32 *before)
{
    i64 offset = scan->string_offset[*before], number;
    if (value->kind == kind && !(kind == STRING && value->escaped) &&
        scan->string_offset[*before + 1] - offset == value->length &&
        !memcmp(scan->blob + offset, value->at, (size_t)value->length)) {
        return value->length ? used_string(scan, *before) : 0;
    }
    number = kind == STRING ? number_of_text(scan, value) : number_of_json(scan, value);
    *before = number < 0 ? 0 : (u32)number;
    return number;
}

/* ---- an event to columns --------------------------------------------------------------------------------- */

enum { ID_NONE, ID_INTEGER, ID_TEXT, ID_LOCAL, ID_GLOBAL, ID_SCOPED };
enum { BINDS_ENCLOSING = 1, SCOPE_PROCESS = 2, SCOPE_GLOBAL = 4 };
enum { WRITTEN, UNUSUAL = -1 }; /* or a table + 1 that is full */

#define COLUMN(name, type) ((type *)scan->columns[name])

static const struct value NOTHING = {(const u8 *)"null", 4, ABSENT, 0};

static inline const struct value *value_of(const struct event *event, int slot)
{
    return event->seen >> slot & 1 ? &event->value[slot] : &NOTHING;
}

static inline int is_text(const struct value *value, const char *text, i64 length)
{
    return value->kind == STRING && value->length == length && !memcmp(value->at, text, (size_t)length);
}

/* Find the last value of a key in an object that is known to be JSON; 0 where a key has escapes. */
static int find_member(struct reader *reader, const struct value *object, const char *name, struct value *member)
{
    const u8 *at = skip_blanks(object->at + 1);
    struct value key, value;
    *member = NOTHING;
    while (*at != '}') {
        at = read_value(reader, read_key(reader, at, &key), &value);
        if (key.escaped) {
            return 0;
        }
        if (is_text(&key, name, (i64)strlen(name))) {
            *member = value;
        }
        at = skip_blanks(at);
        at = *at == ',' ? skip_blanks(at + 1) : at;
    }
    return 1;
}

/* The number of the text [scope,id], or of the id alone. */
static i64 number_of_scoped(struct tl_scan *scan, const struct value *scope, const struct value *id)
{
    u8 *tail = scan->blob + scan->blob_used, *to = tail;
    i64 length;
    if (scope->kind <= NIL) {
        return number_of_json(scan, id);
    }
    *to++ = '[';
    length = copy_json(scope, to);
    if (length < 0) {
        return -1;
    }
    to += length;
    *to++ = ',';
    length = copy_json(id, to);
    if (length < 0) {
        return -1;
    }
    to += length;
    *to++ = ']';
    return number_of(scan, tail, to - tail);
}

static int number_of_id(struct reader *reader, u8 *kind, i64 *number)
{
    struct tl_scan *scan = reader->scan;
    const struct value *id = value_of(&reader->event, ID), *scope = value_of(&reader->event, SCOPE);
    const struct value *both = value_of(&reader->event, ID2);
    if (both->kind == OBJECT) {
        struct value local, global;
        if (!find_member(reader, both, "local", &local) || !find_member(reader, both, "global", &global)) {
            return 0;
        }
        if (local.kind > NIL || global.kind > NIL) {
            *kind = local.kind > NIL ? ID_LOCAL : ID_GLOBAL;
            *number = number_of_scoped(scan, scope, local.kind > NIL ? &local : &global);
            return *number >= 0;
        }
    }
    *kind = ID_NONE;
    *number = 0;
    if (id->kind <= NIL) {
        return 1;
    }
    if (scope->kind <= NIL && id->kind == INTEGER && to_integer(id->at, id->length, number)) {
        *kind = ID_INTEGER;
        return 1;
    }
    *kind = scope->kind > NIL ? ID_SCOPED : ID_TEXT;
    *number = number_of_scoped(scan, scope, id);
    return *number >= 0;
}

/* Whether a string is an integer: digits, perhaps a sign, blanks around. */
static int digits_of(const struct value *value, i64 *number)
{
    const u8 *at = value->at, *end = at + value->length, *digits;
    while (at < end && (*at == ' ' || (*at >= '\t' && *at <= '\r'))) {
        at++;
    }
    while (end > at && (end[-1] == ' ' || (end[-1] >= '\t' && end[-1] <= '\r'))) {
        end--;
    }
    digits = at + (at < end && (*at == '-' || *at == '+'));
    if (end == digits || end - digits > 20) {
        return 0;
    }
    for (const u8 *digit = digits; digit < end; digit++) {
        if (!is_digit(*digit)) {
            return 0;
        }
    }
    return to_integer(at, end - at, number);
}

/* Write the promoted arguments of an event with a time; 0 where Python is to do it. */
static int write_promoted(struct reader *reader)
{
    struct tl_scan *scan = reader->scan;
    struct event *event = &reader->event;
    u64 left = event->arguments_seen;
    int owner = -1;
    for (;;) {
        const struct value *value;
        double real = 0;
        i64 integer = 0, number;
        if (left) {
            int slot = __builtin_ctzll(left);
            left &= left - 1;
            if (scan->key_owner[slot] == owner) {
                continue; /* another key of the same column stood before it in the table */
            }
            owner = scan->key_owner[slot];
            value = &event->argument[slot];
        } else if (owner != scan->cname_column && scan->cname_column >= 0) {
            owner = scan->cname_column;
            value = value_of(event, CNAME);
        } else {
            return 1;
        }
        if (value->kind <= NIL) {
            continue;
        }
        i64 at = scan->promoted_count[owner];
        switch (scan->kinds[owner]) {
        case 'i':
            if (value->kind == STRING && value->escaped) {
                return 0;
            }
            if (value->kind == INTEGER ? !to_integer(value->at, value->length, &integer)
                                       : value->kind != STRING || !digits_of(value, &integer)) {
                continue;
            }
            ((i64 *)scan->promoted_values[owner])[at] = integer;
            break;
        case 'f':
            if (value->kind != INTEGER && value->kind != REAL) {
                continue;
            }
            if (!to_real(value, &real)) {
                return 0;
            }
            ((double *)scan->promoted_values[owner])[at] = real;
            break;
        default:
            number = number_of_text(scan, value);
            if (number < 0) {
                return 0;
            }
            ((u32 *)scan->promoted_values[owner])[at] = (u32)number;
        }
        scan->promoted_ordinals[owner][at] = scan->ordinal;
        scan->promoted_count[owner] = at + 1;
    }
}

/* Write the samples of a counter event: one per number among its arguments; 0 where Python is to do it, as keys
 * are doubled (the last counts, in the place of the first), have escapes, or are many, or as a value is text, which
 * may be a number. */
static int write_samples(struct reader *reader, u32 track, u32 name, u8 id_kind, i64 id)
{
    struct tl_scan *scan = reader->scan;
    const u8 *at = reader->event.arguments;
    i64 row = scan->count[TL_COUNTERS];
    struct value keys[MAX_SERIES], value;
    int members = 0;
    if (!at) {
        return 1;
    }
    for (at = skip_blanks(at); *at != '}'; at = *at == ',' ? skip_blanks(at + 1) : at) {
        struct value *key = &keys[members];
        double real;
        if (members == MAX_SERIES) {
            return 0;
        }
        members++;
        at = skip_blanks(read_value(reader, read_key(reader, at, key), &value));
        for (struct value *other = keys; other < key; other++) {
            if (other->length == key->length && !memcmp(other->at, key->at, (size_t)key->length)) {
                return 0;
            }
        }
        if (key->escaped) {
            return 0;
        }
        if (value.kind == STRING) {
            return 0;
        }
        if (value.kind != INTEGER && value.kind != REAL) {
            continue;
        }
        if (!to_real(&value, &real)) {
            return 0;
        }
        COLUMN(TL_COUNTER_ORDINAL, u32)[row] = scan->ordinal;
        COLUMN(TL_COUNTER_TRACK, u32)[row] = track;
        COLUMN(TL_COUNTER_NAME, u32)[row] = name;
        COLUMN(TL_COUNTER_SERIES, u32)[row] = number_of_string(scan, key);
        COLUMN(TL_COUNTER_ID_KIND, u8)[row] = id_kind;
        COLUMN(TL_COUNTER_ID_VALUE, i64)[row] = id;
        COLUMN(TL_COUNTER_START, i64)[row] = reader->event.ns[0];
        COLUMN(TL_COUNTER_VALUE, double)[row] = real;
        row++;
    }
    scan->count[TL_COUNTERS] = row;
    return 1;
}

static enum tl_table table_of(u8 phase)
{
    switch (phase) {
    case 's': case 't': case 'f':
        return TL_FLOWS;
    case 'b': case 'n': case 'e': case 'S': case 'T': case 'p': case 'F':
        return TL_ASYNCS;
    case 'C':
        return TL_COUNTERS;
    default:
        return TL_TIMED;
    }
}

/* Write an element's place to the block table: a block is what begins in one cell of TL_BLOCK_SIZE bytes. */
static void write_block(struct tl_scan *scan, const u8 *begin, const u8 *end, int irregular)
{
    i64 *offsets = COLUMN(TL_BLOCK_OFFSET, i64), offset = scan->offset + (begin - scan->text);
    i64 row = scan->count[TL_BLOCKS] - 1;
    u8 *repaired = COLUMN(TL_BLOCK_REPAIRED, u8);
    if (row < 0 || scan->new_block || offset / TL_BLOCK_SIZE != offsets[row] / TL_BLOCK_SIZE) {
        row = scan->count[TL_BLOCKS]++;
        offsets[row] = offset;
        COLUMN(TL_BLOCK_ORDINAL, u32)[row] = scan->ordinal;
        COLUMN(TL_BLOCK_COUNT, u32)[row] = 0;
        repaired[row] = 0;
        scan->new_block = 0;
    } else if (irregular) {
        repaired[row] = 1;
    }
    COLUMN(TL_BLOCK_COUNT, u32)[row]++;
    COLUMN(TL_BLOCK_LENGTH, i64)[row] = scan->offset + (end - scan->text) - offsets[row];
}

/* What tables of events have in common. */
struct common {
    u8 phase, flags;
    u32 track, category, name;
};

/* Write the columns that tables begin with, of which the phase is the `first`. */
static inline void write_common(struct tl_scan *scan, int first, i64 row, const struct common *common)
{
    COLUMN(first, u8)[row] = common->phase;
    COLUMN(first + 1, u8)[row] = common->flags;
    COLUMN(first + 2, u32)[row] = scan->ordinal;
    COLUMN(first + 3, u32)[row] = common->track;
    COLUMN(first + 4, u32)[row] = common->category;
    COLUMN(first + 5, u32)[row] = common->name;
}

/* Write the columns that flows and async events end with, of which the kind of their id is the `first`. */
static inline void write_id(struct tl_scan *scan, int first, i64 row, u8 kind, i64 id, i64 start)
{
    COLUMN(first, u8)[row] = kind;
    COLUMN(first + 1, i64)[row] = id;
    COLUMN(first + 2, i64)[row] = start;
}

/* Write the columns of the event that has been looked over. */
static int write_event(struct reader *reader, const u8 *end)
{
    struct tl_scan *scan = reader->scan;
    struct event *event = &reader->event;
    const struct value *ph = value_of(event, PH), *ts = value_of(event, TS), *dur = value_of(event, DUR);
    const struct value *name = value_of(event, NAME), *cat = value_of(event, CAT);
    i64 start, duration = 0, counts = 0;
    if (ph->kind != STRING || ph->length != 1 || *ph->at >= 128 || ph->escaped || event->objects > 1) {
        return UNUSUAL;
    }
    u8 phase = *ph->at;
    if (scan->count[TL_BLOCKS] == scan->capacity[TL_BLOCKS]) {
        return TL_BLOCKS + 1;
    }
    if (phase == 'M') {
        i64 row = scan->count[TL_META];
        if (row == scan->capacity[TL_META]) {
            return TL_META + 1;
        }
        COLUMN(TL_META_ORDINAL, u32)[row] = scan->ordinal;
        COLUMN(TL_META_OFFSET, i64)[row] = scan->offset + (event->begin - scan->text);
        COLUMN(TL_META_LENGTH, i64)[row] = end - event->begin;
        scan->count[TL_META]++;
        goto written;
    }
    if (ts->kind != INTEGER && ts->kind != REAL) {
        if (ts->kind == STRING) {
            return UNUSUAL;
        }
        scan->counts[TL_COUNT_WITHOUT_TIME + phase]++;
        goto written;
    }
    if (event->wide[0]) {
        return UNUSUAL;
    }
    start = event->ns[0];
    if (phase == 'X') {
        if (dur->kind <= NIL) {
            counts = TL_COUNT_MISSING_DURATIONS;
        } else if ((dur->kind != INTEGER && dur->kind != REAL) || event->wide[1]) {
            return UNUSUAL;
        } else if (event->ns[1] < 0) {
            counts = TL_COUNT_NEGATIVE_DURATIONS;
        } else {
            duration = event->ns[1];
        }
        if (duration > TIME_LIMIT - (start > 0 ? start : 0)) {
            return UNUSUAL;
        }
    }
    if (name->kind > NIL && name->kind != STRING) {
        return UNUSUAL;
    }
    if (value_of(event, BIND_ID)->kind > NIL) {
        return UNUSUAL; /* a slice that flows of version 2 come to or leave */
    }
    enum tl_table table = table_of(phase);
    if (scan->count[table] + (table == TL_COUNTERS ? MAX_SERIES : 1) > scan->capacity[table]) {
        return (int)table + 1;
    }
    if (scan->count[TL_STRINGS] + TL_RESERVE > scan->capacity[TL_STRINGS]) {
        return TL_STRINGS + 1;
    }
    if (scan->count[TL_TRACKS] == scan->capacity[TL_TRACKS]) {
        return TL_TRACKS + 1;
    }
    if (scan->blob_used + 2 * (end - event->begin) + 64 > scan->blob_capacity) {
        return TL_NEED_BLOB + 1;
    }

    /* From here on strings and tracks count as used in this batch: if Python is to read the event after all, that
     * is taken back, so that their order is the same whoever reads it. */
    i64 strings_before = scan->string_use_count, tracks_before = scan->track_use_count;
    i64 category_number = number_as_before(scan, cat, STRING, &reader->category), pid, tid;
    i64 name_number = number_of_text(scan, name);
    u8 id_kind = 0;
    i64 id = 0;
    pid = category_number < 0 ? -1 : number_as_before(scan, value_of(event, PID), INTEGER, &reader->pid);
    tid = pid < 0 ? -1 : number_as_before(scan, value_of(event, TID), INTEGER, &reader->tid);
    if (tid < 0) {
        goto unusual;
    }
    u32 category = (u32)category_number, text = (u32)name_number;
    u32 track = reader->track = number_of_track(scan, (u32)pid, (u32)tid, reader->track);
    struct common common = {phase, 0, track, category, text};
    i64 row = scan->count[table];
    if (table != TL_TIMED && !number_of_id(reader, &id_kind, &id)) {
        goto unusual;
    }
    switch (table) {
    case TL_TIMED:
        if (phase == 'i' || phase == 'I' || phase == 'R') {
            const struct value *scope = value_of(event, S);
            if (scope->kind == STRING && scope->escaped) {
                goto unusual;
            }
            common.flags = is_text(scope, "p", 1) ? SCOPE_PROCESS : is_text(scope, "g", 1) ? SCOPE_GLOBAL : 0;
        }
        write_common(scan, TL_TIMED_PHASE, row, &common);
        COLUMN(TL_TIMED_START, i64)[row] = start;
        COLUMN(TL_TIMED_DURATION, i64)[row] = duration;
        if ((event->arguments_seen || event->seen >> CNAME & 1) && !write_promoted(reader)) {
            goto unusual;
        }
        break;
    case TL_FLOWS:
        if (value_of(event, BP)->escaped && value_of(event, BP)->kind == STRING) {
            goto unusual;
        }
        common.flags = is_text(value_of(event, BP), "e", 1) ? BINDS_ENCLOSING : 0;
        write_common(scan, TL_FLOW_PHASE, row, &common);
        write_id(scan, TL_FLOW_ID_KIND, row, id_kind, id, start);
        break;
    case TL_ASYNCS:
        write_common(scan, TL_ASYNC_PHASE, row, &common);
        write_id(scan, TL_ASYNC_ID_KIND, row, id_kind, id, start);
        break;
    default:
        if (!write_samples(reader, track, text, id_kind, id)) {
            goto unusual;
        }
    }
    scan->count[table] += table != TL_COUNTERS;
    if (counts) {
        scan->counts[counts]++;
    }
written:
    scan->counts[TL_COUNT_PHASE + phase]++;
    write_block(scan, event->begin, end, event->irregular);
    scan->ordinal++;
    return WRITTEN;

unusual:
    while (scan->string_use_count > strings_before) {
        scan->string_used[scan->string_uses[--scan->string_use_count]] = 0;
    }
    while (scan->track_use_count > tracks_before) {
        scan->track_used[scan->track_uses[--scan->track_use_count]] = 0;
    }
    for (int i = 0; i < scan->promoted_columns; i++) {
        i64 count = scan->promoted_count[i];
        scan->promoted_count[i] -= count && scan->promoted_ordinals[i][count - 1] == scan->ordinal;
    }
    return UNUSUAL;
}

/* ---- gaps ------------------------------------------------------------------------------------------------ */

/* Where the text stands: between two elements, or behind a value of an event or of its arguments. */
enum level { BETWEEN, IN_EVENT, IN_ARGUMENTS };
/* What a gap does, beside coming to a value: begins and ends events, opens and closes their arguments (which are
 * called `attr` by some), passes over empty ones. */
enum { BEGINS = 1, UNEVEN = 2, OPENS = 4, CLOSES = 8, EMPTY = 16, ENDS = 32, ATTRIBUTES = 64 };

static inline u64 raw_word(const u8 *at)
{
    u64 word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline int fits(const struct tl_gap *gap, const u8 *at)
{
    const u8 *text = gap->text;
    for (int i = gap->words; i; i--, at += 8, text += 8) {
        if (raw_word(at) != raw_word(text)) {
            return 0;
        }
    }
    return !((raw_word(at) ^ raw_word(text)) & gap->mask);
}

static u8 slot_of_key(struct reader *reader, const struct value *key, int in_arguments)
{
    struct tl_scan *scan = reader->scan;
    const u8 *text = key->at;
    i64 length = key->length;
    u8 plain[256];
    if (key->escaped) {
        if (length > (i64)sizeof plain) {
            return SKIPPED;
        }
        length = unescape(key, plain);
        text = plain;
    }
    if (!in_arguments) {
        for (int i = 0; i < EVENT_SLOTS; i++) {
            if ((i64)strlen(EVENT_KEYS[i]) == length && !memcmp(EVENT_KEYS[i], text, (size_t)length)) {
                return (u8)i;
            }
        }
        return SKIPPED;
    }
    for (int i = 0; i < scan->keys; i++) {
        i64 own = scan->key_offset[i + 1] - scan->key_offset[i];
        if (own == length && !memcmp(scan->key_text + scan->key_offset[i], text, (size_t)length)) {
            return (u8)(ARGUMENT + i);
        }
    }
    return SKIPPED;
}

/* Read a gap that was not predicted, byte by byte, and say what it means; between elements `at` is the brace. */
static const u8 *read_gap(struct reader *reader, const u8 *begin, const u8 *at, int level, struct tl_gap *gap)
{
    struct value key;
    memset(gap, 0, sizeof *gap);
    gap->slot = SKIPPED;
    gap->from = gap->level = (u8)level;
    if (level == BETWEEN) {
        gap->does = BEGINS;
        gap->level = IN_EVENT;
        at = skip_blanks(at + 1);
        if (*at == '}') {
            gap->does |= ENDS;
            return at + 1;
        }
    } else {
        at = skip_blanks(at);
        if (level == IN_ARGUMENTS && *at == '}') {
            gap->does |= CLOSES;
            gap->level = IN_EVENT;
            at = skip_blanks(at + 1);
        }
        if (gap->level == IN_EVENT && *at == '}') {
            gap->does |= ENDS;
            return at + 1;
        }
        if (*at != ',') {
            return refuse(reader, at, TL_NO_COMMA);
        }
        at = skip_blanks(at + 1);
    }
    at = read_key(reader, at, &key);
    if (!at) {
        return 0;
    }
    gap->slot = slot_of_key(reader, &key, gap->level == IN_ARGUMENTS);
    if ((gap->slot == ARGS || gap->slot == ATTR) && gap->level == IN_EVENT && *at == '{') {
        gap->does |= gap->slot == ATTR ? ATTRIBUTES : 0;
        gap->opened = (u32)(at + 1 - begin);
        at = skip_blanks(at + 1);
        if (*at == '}') {
            gap->does |= EMPTY;
            return at + 1;
        }
        gap->does |= OPENS;
        gap->level = IN_ARGUMENTS;
        at = read_key(reader, at, &key);
        if (!at) {
            return 0;
        }
        gap->slot = slot_of_key(reader, &key, 1);
    }
    return at;
}

/* Note that a gap followed another; both numbers may be -1, of one that is not remembered. */
static void follow(struct tl_scan *scan, int before, int number)
{
    if (before >= 0 && number >= 0 && scan->gaps[before].next[0] != number) {
        scan->gaps[before].next[1] = scan->gaps[before].next[0];
        scan->gaps[before].next[0] = (u16)number;
    }
}

/* Remember a gap; return its number, -1 if it is too long. When the table is full all is forgotten: numbers that
 * stayed would point to gaps of another meaning. (Traces with keys of their own in every event come to that.) */
static int remember(struct tl_scan *scan, int before, const u8 *text, i64 length, const struct tl_gap *meaning)
{
    u8 mask[8] = {0};
    struct tl_gap *gap;
    int number;
    if (length > TL_GAP_TEXT) {
        return -1;
    }
    if (scan->gap_count == TL_GAPS) {
        memset(scan->gaps, 0, sizeof *gap * TL_GAPS);
        scan->gap_count = 1;
        before = -1;
    }
    number = scan->gap_count++;
    gap = &scan->gaps[number];
    *gap = *meaning;
    memcpy(gap->text, text, (size_t)length);
    gap->length = (u8)length;
    gap->words = (u8)(length / 8);
    memset(mask, 0xFF, (size_t)(length % 8));
    memcpy(&gap->mask, mask, sizeof mask);
    follow(scan, before, number);
    return number;
}

/* Find a gap that fits among all that are remembered; -1 if there is none. */
static int find_gap(const struct tl_scan *scan, int level, const u8 *at)
{
    for (int number = 1; number < scan->gap_count; number++) {
        if (scan->gaps[number].from == level && fits(&scan->gaps[number], at)) {
            return number;
        }
    }
    return -1;
}

/* ---- the scan -------------------------------------------------------------------------------------------- */

/* Note what a gap between values of an event does. */
static inline void apply(struct reader *reader, const struct tl_gap *gap, const u8 *at)
{
    struct event *event = &reader->event;
    if (gap->does & (OPENS | EMPTY)) {
        int slot = gap->does & ATTRIBUTES ? ATTR : ARGS;
        event->objects += event->seen >> slot & 1 ? 2 : 1;
        event->seen |= (u32)1 << slot;
        event->arguments = gap->does & OPENS ? at + gap->opened : event->arguments;
    }
}

/* Read the value that a gap leads to; return the place behind it. */
static inline const u8 *read_slot(struct reader *reader, const u8 *at, int slot)
{
    struct event *event = &reader->event;
    struct value skipped;
    if (slot == SKIPPED) {
        return read_value(reader, at, &skipped);
    }
    if (slot >= ARGUMENT) {
        event->arguments_seen |= (u64)1 << (slot - ARGUMENT);
        return read_value(reader, at, &event->argument[slot - ARGUMENT]);
    }
    if (slot == ARGS || slot == ATTR) { /* no object, or it would have been opened */
        event->objects += event->seen >> slot & 1 ? 2 : 0;
    }
    event->seen |= (u32)1 << slot;
    if (slot == TS || slot == DUR) {
        return read_time(reader, at, &event->value[slot], slot == DUR);
    }
    return read_value(reader, at, &event->value[slot]);
}

/* Look over one event, from `at` behind the last element (its brace is at `brace`) to behind its own brace. */
static const u8 *read_event(struct reader *reader, const u8 *at, const u8 *brace, int irregular)
{
    struct tl_scan *scan = reader->scan;
    struct event *event = &reader->event;
    struct tl_gap other;
    int before = 0, level = BETWEEN;
    event->seen = 0;
    event->arguments_seen = 0;
    event->objects = 0;
    event->arguments = 0;
    event->begin = brace;
    event->irregular = irregular;
    for (;;) {
        const struct tl_gap *gap = 0;
        int number = -1;
        if (before >= 0) {
            number = scan->gaps[before].next[0];
            if (!number || !fits(&scan->gaps[number], at)) {
                number = scan->gaps[before].next[1];
                number = number && fits(&scan->gaps[number], at) ? number : -1;
            }
        }
        if (number < 0) {
            number = find_gap(scan, level, at);
            follow(scan, before, number);
        }
        if (number >= 0) {
            gap = &scan->gaps[number];
            apply(reader, gap, at);
            at += gap->length;
        } else {
            const u8 *begin = at;
            at = read_gap(reader, at, level == BETWEEN ? brace : at, level, &other);
            if (!at) {
                return 0;
            }
            gap = &other;
            apply(reader, gap, begin);
            if (at - begin <= TL_GAP_TEXT && gap->slot != ARGS && gap->slot != ATTR) {
                number = remember(scan, before, begin, at - begin, gap);
            }
        }
        if (gap->does & ENDS) {
            return at;
        }
        level = gap->level;
        before = number;
        if (gap->does & EMPTY) {
            continue;
        }
        if (*at <= ' ') { /* more blanks than the gap had that fits */
            at = skip_blanks(at);
        }
        at = read_slot(reader, at, gap->slot);
        if (!at) {
            return 0;
        }
    }
}

/* Go from behind an element to the next one, over blanks and commas; 0 if there is not exactly one comma. */
static const u8 *next_element(const u8 *at, int *irregular)
{
    int commas = 0;
    for (;; at++) {
        at = skip_blanks(at);
        if (*at != ',') {
            *irregular = commas != 1;
            return at;
        }
        commas += commas < 2;
    }
}

/* Whether a list begins with what may be an event: its bracket is damage. */
static int lists_events(struct reader *reader, const u8 *at)
{
    struct value key;
    while (*at == '[') {
        at = skip_blanks(at + 1);
    }
    at = *at == '{' ? read_key(reader, skip_blanks(at + 1), &key) : 0;
    return at && !key.escaped && slot_of_key(reader, &key, 0) != SKIPPED;
}

/* Read elements from `at` on, up to the first that begins at or after `limit`.
 *
 * TL_OK: `at` is where that element begins, or the text has been read to its end.
 * TL_NEED: the element behind `at` needs more of what `reason` names; the call can be repeated with that.
 * TL_STOPPED: `at` stands before an element or bracket that `reason` speaks of: `begin` is where it begins, and
 * `stop` the byte that is not accepted (where it ends, if it is sound but for Python). Whatever `begin` says has
 * been read is in the columns.
 */
int32_t tl_scan(struct tl_scan *scan)
{
    struct reader reader;
    const u8 *text = scan->text, *end = text + scan->end, *at = text + scan->at, *look = at;
    reader.scan = scan;
    reader.category = reader.pid = reader.tid = reader.track = 0;
    if (!scan->gap_count) {
        scan->gap_count = 1; /* the first stands for the place between two elements */
    }
    for (;;) {
        const u8 *behind;
        int irregular, status;
        const u8 *begin = next_element(at, &irregular);
        scan->reason = 0;
        if (begin - text >= scan->limit && (begin < end || scan->is_last)) {
            scan->at = begin - text;
            *scan->progress += begin - look;
            return TL_OK;
        }
        if (begin >= end) {
            scan->at = scan->is_last ? begin - text : at - text;
            *scan->progress += at - look;
            scan->reason = TL_NEED_TEXT;
            return scan->is_last ? TL_OK : TL_NEED;
        }
        scan->at = at - text;
        scan->begin = begin - text;
        scan->irregular = irregular;
        if (at - look >= CANCEL_BYTES) {
            *scan->progress += at - look;
            look = at;
            if (*scan->cancel) {
                return TL_CANCELLED;
            }
        }
        if (*begin == '{') {
            behind = read_event(&reader, at, begin, irregular);
        } else if (*begin == ']') {
            behind = refuse(&reader, begin, TL_CLOSED);
        } else if (*begin == '[' && lists_events(&reader, begin)) {
            behind = refuse(&reader, begin, TL_NO_VALUE);
        } else {
            struct value value;
            behind = read_value(&reader, begin, &value);
            const u8 *following = behind ? skip_blanks(behind) : end;
            if (following >= end) { /* a number may go on */
                behind = behind && scan->is_last ? behind : behind ? refuse(&reader, end, TL_TEXT_ENDS) : 0;
            } else if (*following != ',' && *following != ']') {
                behind = refuse(&reader, behind, TL_NO_COMMA);
            }
        }
        if (!behind && reader.fault >= end) {
            reader.reason = TL_TEXT_ENDS;
            if (!scan->is_last) {
                scan->reason = TL_NEED_TEXT;
                *scan->progress += at - look;
                return TL_NEED;
            }
        }
        status = WRITTEN;
        if (behind && behind - begin > scan->longest) {
            reader.reason = TL_LONG;
            status = UNUSUAL;
        } else if (behind && *begin == '{') {
            reader.reason = TL_UNUSUAL;
            status = write_event(&reader, behind);
        } else if (behind) {
            if (scan->count[TL_BLOCKS] == scan->capacity[TL_BLOCKS]) {
                status = TL_BLOCKS + 1;
            } else {
                scan->counts[TL_COUNT_NOT_OBJECTS]++;
                write_block(scan, begin, behind, irregular);
                scan->ordinal++;
            }
        }
        if (status > WRITTEN) {
            scan->reason = status - 1;
            *scan->progress += at - look;
            return TL_NEED;
        }
        if (!behind || status == UNUSUAL) {
            scan->reason = reader.reason;
            scan->stop = (behind ? behind : reader.fault) - text;
            *scan->progress += at - look;
            return TL_STOPPED;
        }
        at = behind;
    }
}

int64_t tl_number_string(struct tl_scan *scan, const uint8_t *text, int64_t length)
{
    if (scan->blob_used + length > scan->blob_capacity || scan->count[TL_STRINGS] == scan->capacity[TL_STRINGS]) {
        return -1;
    }
    return number_of(scan, text, length);
}

int64_t tl_number_track(struct tl_scan *scan, uint32_t pid, uint32_t tid)
{
    return scan->count[TL_TRACKS] == scan->capacity[TL_TRACKS] ? -1 : (i64)number_of_track(scan, pid, tid, 0);
}

void tl_rehash(struct tl_scan *scan)
{
    memset(scan->string_slots, 0, (size_t)(scan->string_mask + 1) * sizeof *scan->string_slots);
    memset(scan->track_slots, 0, (size_t)(scan->track_mask + 1) * sizeof *scan->track_slots);
    for (i64 number = 1; number < scan->count[TL_STRINGS]; number++) {
        i64 offset = scan->string_offset[number];
        u64 hash = hash_of(scan, scan->blob + offset, scan->string_offset[number + 1] - offset), slot;
        for (slot = hash & scan->string_mask; scan->string_slots[slot]; slot = (slot + 1) & scan->string_mask) {
        }
        scan->string_slots[slot] = (hash & ~(u64)0xFFFFFFFF) | (u64)(number + 1);
    }
    for (i64 number = 0; number < scan->count[TL_TRACKS]; number++) {
        u64 hash = fold(((u64)scan->track_pid[number] << 32 | scan->track_tid[number]) ^ scan->seed[0], scan->seed[1]);
        u64 slot;
        for (slot = hash & scan->track_mask; scan->track_slots[slot]; slot = (slot + 1) & scan->track_mask) {
        }
        scan->track_slots[slot] = (hash & ~(u64)0xFFFFFFFF) | (u64)(number + 1);
    }
}
