/* Fuzzes scan.c, build.c and inflate.c in one process, with sanitizers: see native_core.py, which compiles and runs this.
 *
 *     native_core run SEED SECONDS INPUTS CURRENT KEPT FILE…   mutants of the files, until either is reached
 *     native_core one FILE…                                    each file once, as it is
 *
 * Each input is a text of elements. It is scanned in one piece and with ample room, then cut in two and with
 * scarce room: both must read the same. What was read is built as LaneWriter and FlowPairs build it, and what comes
 * of it is held against its definition. Its bytes are inflated, too, in one piece and in many. How an input is cut and what room it gets follows from its bytes, so that a
 * file shows again what it showed first. The input that is being tried stands in the file CURRENT, which is mapped:
 * it is there however the process ends. Inputs that reach code which none before has reached are mutated further;
 * with a folder KEPT (else -) they are written there.
 */
#include "../../core/native/native.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LONGEST 4096   /* bytes of an input */
#define MAX_KEPT 8192 /* inputs that are mutated further */
#define NONE UINT32_MAX
#define TIME_LIMIT (((int64_t)1 << 62) - 1)
#define HANG_SECONDS 20 /* of processor time, for a thousand inputs */
#define CHECK(holds) ((holds) ? (void)0 : fail(#holds, __LINE__))

/* build.c exports these without a header: Python calls them by name. */
int tl_order(uint64_t, const uint64_t *, const uint8_t *, const int64_t *, const int64_t *, const uint32_t *, uint32_t *,
             uint32_t *, uint64_t *, uint8_t *, const volatile uint8_t *);
int tl_take(uint64_t, uint64_t, const void *, const uint32_t *, void *, const volatile uint8_t *);
int tl_put(uint64_t, uint64_t, const void *, const uint32_t *, void *, const volatile uint8_t *);
int tl_places(uint64_t, const uint32_t *, uint64_t *, uint32_t *, const volatile uint8_t *);
int tl_intern(uint64_t, const uint16_t *, const uint32_t *, const uint8_t *const *, const int64_t *const *, uint64_t,
              uint32_t *, uint64_t, uint16_t *, uint32_t *, uint32_t *, uint64_t *, const volatile uint8_t *);
int tl_texts(uint64_t, const uint16_t *, const uint32_t *, const uint8_t *const *, const int64_t *const *, uint64_t,
             uint8_t *, int64_t *, uint64_t *, const volatile uint8_t *);
int tl_match(uint64_t, const uint64_t *, const uint8_t *, const uint32_t *, uint32_t *, const volatile uint8_t *);
uint64_t tl_rows_room(uint64_t);
int tl_rows(uint64_t, const uint64_t *, const uint64_t *, const int64_t *, const int64_t *, const uint32_t *, uint32_t *, int64_t *,
            uint8_t *, uint32_t *, uint32_t *, uint32_t *, uint32_t *, uint32_t *, uint64_t *, int64_t *, void *,
            const volatile uint8_t *);
int tl_slices(uint64_t, const uint32_t *, uint64_t, uint64_t, const int64_t *, const int64_t *, const int64_t *,
              const uint32_t *, const uint32_t *, const uint32_t *, int64_t *, uint32_t *, uint32_t *, uint32_t *,
              uint32_t *, uint32_t *, const volatile uint8_t *);
uint64_t tl_bind_room(uint64_t);
int tl_bind(uint64_t, const uint64_t *, const uint64_t *, const int64_t *, const int64_t *, const uint32_t *,
            const uint32_t *, const uint32_t *, uint64_t, const uint64_t *, const uint32_t *, const uint8_t *,
            const uint8_t *, const int64_t *, const uint32_t *, const uint8_t *, const int64_t *, uint64_t,
            const uint32_t *, const int64_t *, uint32_t *, void *, const volatile uint8_t *);
int tl_pair(uint64_t, const uint8_t *, const uint32_t *, const uint32_t *, const uint8_t *, const int64_t *,
            const uint32_t *, const int64_t *, uint64_t, uint32_t *, uint64_t, uint32_t *, uint32_t *, uint32_t *,
            uint32_t *, int64_t *, uint32_t *, uint32_t *, uint64_t *, const volatile uint8_t *);
int tl_promote(uint64_t, uint64_t, const uint32_t *, const void *, const uint32_t *, void *, uint64_t *, int64_t *,
               int64_t *, const volatile uint8_t *);
int tl_compact(uint64_t, uint64_t, uint64_t, uint64_t, const void *, const uint64_t *, uint32_t *, void *, uint64_t *,
               const volatile uint8_t *);

static const uint8_t never = 0;

static void fail(const char *what, int line)
{
    fprintf(stderr, "native_core.c:%d: does not hold: %s\n", line, what);
    abort();
}

static uint64_t state; /* of the random numbers */

static uint64_t chance(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

static uint64_t digest_of(uint64_t digest, const void *data, size_t size)
{
    for (const uint8_t *at = data; size; at++, size--) {
        digest = (digest ^ *at) * UINT64_C(0x100000001B3);
    }
    return digest;
}

/* Memory of exactly so many bytes, so that a sanitizer sees every access beyond; what it holds is never zero. */
static void *room(size_t size)
{
    void *memory = malloc(size ? size : 1);
    CHECK(memory);
    memset(memory, 0xA5, size ? size : 1);
    return memory;
}

static void *grown(void *memory, size_t before, size_t size)
{
    void *result = room(size);
    if (memory) {
        memcpy(result, memory, before < size ? before : size);
    }
    free(memory);
    return result;
}

/* ---- coverage ---------------------------------------------------------------------------------------------- */

#define EDGES (1 << 15)
static uint8_t hits[EDGES], reached[EDGES];
static uint64_t last_place;

/* Called by every branch of the code that is fuzzed (-fsanitize-coverage=trace-pc). */
void __sanitizer_cov_trace_pc(void)
{
    const uint64_t place = ((uintptr_t)__builtin_return_address(0) - (uintptr_t)tl_scan) * UINT64_C(0x9E3779B1);
    hits[(place ^ last_place) >> 8 & (EDGES - 1)]++;
    last_place = place >> 1;
}

/* Whether an input went where none has gone before, or more often by half an order of magnitude. */
static int is_new_ground(void)
{
    int is_new = 0;
    for (size_t i = 0; i < EDGES; i += 8) {
        if (!tl_load64(hits + i)) {
            continue;
        }
        for (size_t k = i; k < i + 8; k++) {
            const uint8_t n = hits[k];
            const uint8_t bit = n > 127 ? 128 : n > 31 ? 64 : n > 15 ? 32 : n > 7 ? 16 : n > 3 ? 8 : n > 2 ? 4 : n;
            is_new |= bit & ~reached[k];
            reached[k] |= bit;
        }
    }
    memset(hits, 0, sizeof hits);
    last_place = 0;
    return is_new;
}

/* ---- scanning ---------------------------------------------------------------------------------------------- */

static const uint8_t WIDTHS[TL_COLUMNS] = {
    1, 1, 4, 4, 4, 4, 8, 8, 1, 1, 4, 4, 4, 4, 1, 8, 8, 1, 1, 4, 4, 4, 4, 1, 8, 8,
    4, 4, 4, 4, 1, 8, 8, 8, 8, 8, 4, 4, 1, 4, 8, 8};
static const uint8_t FIRST[TL_STRINGS + 1] = {
    TL_TIMED_PHASE, TL_FLOW_PHASE, TL_ASYNC_PHASE, TL_COUNTER_ORDINAL, TL_BLOCK_OFFSET, TL_META_ORDINAL, TL_COLUMNS};
/* Promoted arguments; two keys of one column, and a column of few categories. */
static const char KEYS[] = "correlationExternal idexternal idbytesoccupancygridInput Dimscname";
static const int32_t KEY_OFFSETS[] = {0, 11, 22, 33, 38, 47, 51, 61};
static const uint8_t KEY_OWNERS[] = {0, 1, 1, 2, 3, 4, 5, 0};
static const uint8_t KINDS[] = "iiiftt" "t";
enum { PROMOTED = 7, KEY_COUNT = 7, CORRELATION = 0 };

typedef struct {
    uint8_t *text;
    int64_t size;
} input;

typedef struct {
    struct tl_scan scan;
    void *columns[TL_COLUMNS], *values[PROMOTED];
    uint32_t *ordinals[PROMOTED];
    int64_t count[TL_TABLES], capacity[TL_TABLES], counts[TL_COUNTS], promoted[PROMOTED];
    struct tl_gap gaps[TL_GAPS];
    int64_t progress;
    uint64_t digest; /* of where and why it stopped */
} reading;

static void grow(reading *own, int table)
{
    struct tl_scan *scan = &own->scan;
    const int64_t before = own->capacity[table], size = own->capacity[table] = 2 * before;
    if (table < TL_STRINGS) {
        for (int i = FIRST[table]; i < FIRST[table + 1]; i++) {
            own->columns[i] = grown(own->columns[i], (size_t)(before * WIDTHS[i]), (size_t)(size * WIDTHS[i]));
        }
        for (int i = 0; table == TL_TIMED && i < PROMOTED; i++) {
            own->ordinals[i] = grown(own->ordinals[i], (size_t)before * 4, (size_t)size * 4);
            own->values[i] = grown(own->values[i], (size_t)before * 8, (size_t)size * 8);
        }
        return;
    }
    if (table == TL_STRINGS) {
        scan->string_offset = grown(scan->string_offset, (size_t)(before + 1) * 8, (size_t)(size + 1) * 8);
        scan->string_used = grown(scan->string_used, (size_t)before, (size_t)size);
        memset(scan->string_used + before, 0, (size_t)(size - before));
        scan->string_uses = grown(scan->string_uses, (size_t)before * 4, (size_t)size * 4);
        scan->string_slots = grown(scan->string_slots, 0, (size_t)size * 16);
        scan->string_mask = 2 * (uint64_t)size - 1;
    } else {
        scan->track_pid = grown(scan->track_pid, (size_t)before * 4, (size_t)size * 4);
        scan->track_tid = grown(scan->track_tid, (size_t)before * 4, (size_t)size * 4);
        scan->track_used = grown(scan->track_used, (size_t)before, (size_t)size);
        memset(scan->track_used + before, 0, (size_t)(size - before));
        scan->track_uses = grown(scan->track_uses, (size_t)before * 4, (size_t)size * 4);
        scan->track_slots = grown(scan->track_slots, 0, (size_t)size * 16);
        scan->track_mask = 2 * (uint64_t)size - 1;
    }
    if (scan->string_slots && scan->track_slots) { /* strings come first */
        tl_rehash(scan);
    }
}

static void grow_blob(reading *own, int64_t least)
{
    const int64_t size = own->scan.blob_capacity + least;
    own->scan.blob = grown(own->scan.blob, (size_t)own->scan.blob_used, (size_t)size);
    own->scan.blob_capacity = size;
}

/* Half the room that is given: `grow` doubles it, and makes the slots. */
static void begin_reading(reading *own, int64_t size, uint64_t seed)
{
    struct tl_scan *scan = &own->scan;
    memset(own, 0, sizeof *own);
    own->digest = UINT64_C(0xCBF29CE484222325);
    scan->columns = own->columns;
    scan->count = own->count;
    scan->capacity = own->capacity;
    scan->counts = own->counts;
    scan->seed[0] = seed | 1;
    scan->seed[1] = ~seed | 1;
    scan->key_text = (const uint8_t *)KEYS;
    scan->key_offset = KEY_OFFSETS;
    scan->key_owner = KEY_OWNERS;
    scan->kinds = KINDS;
    scan->keys = KEY_COUNT;
    scan->cname_column = PROMOTED - 1;
    scan->promoted_columns = PROMOTED;
    scan->promoted_ordinals = own->ordinals;
    scan->promoted_values = own->values;
    scan->promoted_count = own->promoted;
    scan->gaps = own->gaps;
    scan->cancel = &never;
    scan->progress = &own->progress;
    for (int table = 0; table < TL_TABLES; table++) {
        own->capacity[table] = table == TL_STRINGS ? 512 : size;
        if (table == TL_STRINGS) {
            scan->string_offset = room(513 * 8);
            scan->string_offset[0] = scan->string_offset[1] = 0;
            scan->string_used = room(512);
            memset(scan->string_used, 0, 512);
        } else if (table == TL_TRACKS) {
            scan->track_used = room((size_t)size);
            memset(scan->track_used, 0, (size_t)size);
        }
        own->count[TL_STRINGS] = 1;
        grow(own, table);
    }
    grow_blob(own, 64);
}

static void end_reading(reading *own)
{
    struct tl_scan *scan = &own->scan;
    for (int i = 0; i < TL_COLUMNS; i++) {
        free(own->columns[i]);
    }
    for (int i = 0; i < PROMOTED; i++) {
        free(own->ordinals[i]);
        free(own->values[i]);
    }
    free(scan->blob);
    free(scan->string_offset);
    free(scan->string_slots);
    free(scan->string_used);
    free(scan->string_uses);
    free(scan->track_pid);
    free(scan->track_tid);
    free(scan->track_slots);
    free(scan->track_used);
    free(scan->track_uses);
}

/* Read elements from `at` to `end` of a text; what is refused or left to Python is passed over. Return where to go
 * on. */
static int64_t read_piece(reading *own, const input *whole, int64_t at, int64_t end, int64_t longest)
{
    const uint8_t *const text = whole->text;
    struct tl_scan *scan = &own->scan;
    uint8_t *copy = room((size_t)(end - at) + TL_PAD);
    memcpy(copy, text + at, (size_t)(end - at));
    memset(copy + (end - at), 0, TL_PAD);
    scan->text = copy;
    scan->offset = at;
    scan->end = end - at;
    scan->limit = INT64_MAX;
    scan->longest = longest;
    scan->is_last = end == whole->size;
    scan->at = 0;
    for (;;) {
        const int32_t status = tl_scan(scan);
        CHECK(0 <= scan->at && scan->at <= scan->end);
        if (status == TL_OK || (status == TL_NEED && scan->reason == TL_NEED_TEXT)) {
            break;
        }
        if (status == TL_NEED) {
            CHECK(0 <= scan->reason && scan->reason <= TL_NEED_BLOB);
            if (scan->reason == TL_NEED_BLOB) {
                grow_blob(own, 2 * LONGEST + 64);
            } else {
                grow(own, scan->reason);
            }
            continue;
        }
        CHECK(status == TL_STOPPED && scan->at <= scan->begin && scan->begin < scan->end);
        CHECK(scan->begin <= scan->stop && scan->stop <= scan->end);
        const int64_t where[3] = {scan->begin + at, scan->stop + at, scan->reason};
        own->digest = digest_of(own->digest, where, sizeof where);
        if (scan->reason == TL_UNUSUAL) {
            scan->at = scan->stop;
        } else {
            const int64_t behind = at + scan->begin + 1;
            const uint8_t *next = memchr(text + behind, '{', (size_t)(whole->size - behind));
            scan->at = (next ? next - text : whole->size) - at;
            if (scan->at >= scan->end) {
                break;
            }
        }
    }
    at += scan->at;
    free(copy);
    return at;
}

static void expect_same(const char *what, int number, const void *a, const void *b, uint64_t size)
{
    if (size && memcmp(a, b, size)) {
        fprintf(stderr, "%s %d differs where the text is cut in two\n", what, number);
        abort();
    }
}

/* Both readings of a text, whatever room they had and how it was cut, read the same. */
static void compare_readings(const reading *one, const reading *other)
{
    const struct tl_scan *scan = &one->scan;
    CHECK(one->scan.ordinal == other->scan.ordinal);
    expect_same("place of a stop", 0, &one->digest, &other->digest, 8);
    expect_same("count of a table", 0, one->count, other->count, sizeof one->count);
    expect_same("count of events", 0, one->counts, other->counts, sizeof one->counts);
    expect_same("count of a promoted argument", 0, one->promoted, other->promoted, sizeof one->promoted);
    for (int table = 0; table < TL_STRINGS; table++) {
        for (int i = FIRST[table]; i < FIRST[table + 1]; i++) {
            expect_same("column", i, one->columns[i], other->columns[i], (uint64_t)one->count[table] * WIDTHS[i]);
        }
    }
    for (int i = 0; i < PROMOTED; i++) {
        const uint64_t count = (uint64_t)one->promoted[i], width = KINDS[i] == 't' ? 4 : 8;
        expect_same("ordinals of promoted argument", i, one->ordinals[i], other->ordinals[i], count * 4);
        expect_same("values of promoted argument", i, one->values[i], other->values[i], count * width);
    }
    CHECK(scan->blob_used == other->scan.blob_used && scan->string_use_count == other->scan.string_use_count);
    expect_same("texts", 0, scan->blob, other->scan.blob, (uint64_t)scan->blob_used);
    expect_same("strings", 0, scan->string_uses, other->scan.string_uses, (uint64_t)scan->string_use_count * 4);
    expect_same("tracks", 0, scan->track_uses, other->scan.track_uses, (uint64_t)scan->track_use_count * 4);
}

/* ---- building ---------------------------------------------------------------------------------------------- */

enum { SLICE, INSTANT, CLOSING };

typedef struct {
    uint64_t n, lanes;
    uint64_t *bounds;
    uint8_t *phase, *kind;
    uint32_t *ordinal, *name;
    int64_t *start, *duration;
} lane_events;

static int is_one_of(uint8_t phase, const char *phases)
{
    return phase && strchr(phases, phase) != 0;
}

static void *placed(void *values, uint64_t width, uint64_t n, const uint32_t *place)
{
    void *out = room(n * width);
    CHECK(tl_put(width, n, values, place, out, &never) == TL_OK);
    free(values);
    return out;
}

static void *taken(void *values, uint64_t width, uint64_t n, const uint32_t *order)
{
    void *out = room(n * width);
    CHECK(tl_take(width, n, values, order, out, &never) == TL_OK);
    free(values);
    return out;
}

/* Timed and async events by track: each track is a lane, another one for its async events; empty ones are none. */
static lane_events events_by_lane(const reading *own, uint32_t *lane_of)
{
    const uint64_t timed = (uint64_t)own->count[TL_TIMED], asyncs = (uint64_t)own->count[TL_ASYNCS];
    const uint64_t tracks = (uint64_t)own->count[TL_TRACKS];
    lane_events events = {timed + asyncs, 0, room((2 * tracks + 2) * 8), 0, 0, 0, 0, 0, 0};
    const uint64_t n = events.n;
    uint32_t *track = room(n * 4), *place = room(n * 4);
    uint64_t *sizes = room(2 * tracks * 8);
    events.phase = room(n);
    events.kind = room(n);
    events.ordinal = room(n * 4);
    events.name = room(n * 4);
    events.start = room(n * 8);
    events.duration = room(n * 8);
    memset(sizes, 0, 2 * tracks * 8);
    for (uint64_t i = 0; i < n; i++) {
        const int table = i < timed ? TL_TIMED_PHASE : TL_ASYNC_PHASE;
        const uint64_t row = i < timed ? i : i - timed;
        events.phase[i] = ((uint8_t *)own->columns[table])[row];
        events.ordinal[i] = ((uint32_t *)own->columns[table + 2])[row];
        events.name[i] = ((uint32_t *)own->columns[table + 5])[row];
        track[i] = ((uint32_t *)own->columns[table + 3])[row] + (i < timed ? 0 : (uint32_t)tracks);
        events.start[i] = ((int64_t *)own->columns[i < timed ? TL_TIMED_START : TL_ASYNC_START])[row];
        events.duration[i] = i < timed ? ((int64_t *)own->columns[TL_TIMED_DURATION])[row] : 0;
        CHECK(-TIME_LIMIT <= events.start[i] && events.start[i] <= TIME_LIMIT);
        CHECK(0 <= events.duration[i] && events.duration[i] <= TIME_LIMIT - events.start[i]);
        CHECK(track[i] < 2 * tracks);
        sizes[track[i]]++;
    }
    uint64_t at = 0;
    for (uint64_t i = 0; i < 2 * tracks; i++) {
        const uint64_t size = sizes[i];
        lane_of[i] = size ? (uint32_t)events.lanes : NONE;
        if (size) {
            events.bounds[events.lanes++] = at;
        }
        sizes[i] = at; /* the next free place */
        at += size;
    }
    events.bounds[events.lanes] = at;
    CHECK(tl_places(n, track, sizes, place, &never) == TL_OK);
    events.phase = placed(events.phase, 1, n, place);
    events.ordinal = placed(events.ordinal, 4, n, place);
    events.name = placed(events.name, 4, n, place);
    events.start = placed(events.start, 8, n, place);
    events.duration = placed(events.duration, 8, n, place);
    free(track);
    free(place);
    free(sizes);
    return events;
}

static void reorder(lane_events *events, const uint32_t *order)
{
    events->phase = taken(events->phase, 1, events->n, order);
    events->kind = taken(events->kind, 1, events->n, order);
    events->ordinal = taken(events->ordinal, 4, events->n, order);
    events->name = taken(events->name, 4, events->n, order);
    events->start = taken(events->start, 8, events->n, order);
    events->duration = taken(events->duration, 8, events->n, order);
}

/* Begins and ends to slices, as LaneWriter._matched does. */
static void match_events(lane_events *events)
{
    const uint64_t n = events->n;
    uint32_t *order = room(n * 4), *sorting = room(n * 4), *partner = room(n * 4);
    uint64_t *sizes = room(events->lanes * 16);
    uint8_t moved;
    CHECK(tl_order(events->lanes, events->bounds, 0, events->start, 0, events->ordinal, order, sorting, sizes, &moved,
                   &never) == TL_OK);
    reorder(events, order);
    CHECK(tl_match(events->lanes, events->bounds, events->phase, events->name, partner, &never) ==
          TL_OK);
    for (uint64_t lane = 0; lane < events->lanes; lane++) {
        int64_t last = -TIME_LIMIT;
        for (uint64_t i = events->bounds[lane]; i < events->bounds[lane + 1]; i++) {
            const int64_t end = events->start[i] + events->duration[i];
            last = end > last ? end : last;
            CHECK(i == events->bounds[lane] || events->start[i - 1] <= events->start[i]);
        }
        for (uint64_t i = events->bounds[lane]; i < events->bounds[lane + 1]; i++) {
            const uint32_t other = partner[i];
            CHECK(other == NONE || (partner[other] == i && events->bounds[lane] <= other));
            events->kind[i] = is_one_of(events->phase[i], "XBbS") ? SLICE : INSTANT;
            if (is_one_of(events->phase[i], "BbS")) {
                CHECK(other == NONE || other > i);
                events->duration[i] = (other == NONE ? last : events->start[other]) - events->start[i];
            } else if (other != NONE) {
                events->kind[i] = CLOSING;
            }
        }
    }
    CHECK(tl_order(events->lanes, events->bounds, events->kind, events->start, events->duration, events->ordinal,
                   order, sorting, sizes, &moved, &never) == TL_OK);
    reorder(events, order);
    free(order);
    free(sorting);
    free(partner);
    free(sizes);
}

typedef struct {
    uint64_t slices;
    uint64_t *count; /* slices of each lane */
    uint32_t *parent, *position, *slot_of;
} built_rows;

/* Rows and columns of slices, each held against what it means. */
static built_rows build_rows(const lane_events *events, uint32_t ordinals)
{
    const uint64_t n = events->n, lanes = events->lanes;
    built_rows built = {0, room(lanes * 8), room(n * 4), room(n * 4), room((uint64_t)ordinals * 4)};
    uint64_t longest = 0;
    memset(built.slot_of, 0xFF, (uint64_t)ordinals * 4);
    for (uint64_t lane = 0; lane < lanes; lane++) {
        uint64_t i = events->bounds[lane];
        while (i < events->bounds[lane + 1] && events->kind[i] == SLICE) {
            i++;
        }
        built.count[lane] = i - events->bounds[lane];
        built.slices += built.count[lane];
        longest = built.count[lane] > longest ? built.count[lane] : longest;
    }
    const uint64_t count = built.slices;
    int64_t *self_time = room(n * 8), *lane_end = room(lanes * 8), *out_start = room(count * 8);
    uint8_t *overlap = room(n);
    uint32_t *order = room(count * 4), *row_sizes = room(count * 4), *lane_rows = room(lanes * 4);
    uint32_t *depth = room(lanes * 4), *out[4] = {room(count * 4), room(count * 4), room(count * 4), room(count * 4)};
    uint64_t *overlaps = room(lanes * 8);
    void *own = room(tl_rows_room(longest));
    CHECK(tl_rows(lanes, events->bounds, built.count, events->start, events->duration, NULL, built.parent, self_time, overlap,
                  built.position, order, row_sizes, lane_rows, depth, overlaps, lane_end, own, &never) == TL_OK);
    uint64_t place = 0, row = 0;
    for (uint64_t lane = 0; lane < lanes; lane++) {
        for (uint32_t k = 0; k < lane_rows[lane]; k++, row++) {
            int64_t before = INT64_MIN;
            CHECK(row_sizes[row]);
            for (uint32_t j = 0; j < row_sizes[row]; j++, place++) {
                const uint32_t i = order[place], parent = built.parent[i];
                const int64_t end = events->start[i] + events->duration[i];
                CHECK(built.position[i] == place && events->bounds[lane] <= i);
                CHECK(i < events->bounds[lane] + built.count[lane]);
                CHECK(before <= events->start[i] && end <= lane_end[lane]);
                CHECK(0 <= self_time[i] && self_time[i] <= events->duration[i]);
                if (parent != NONE) {
                    CHECK(parent < i && built.position[parent] < place && events->start[parent] <= events->start[i]);
                    CHECK(end <= events->start[parent] + events->duration[parent]);
                }
                before = end;
            }
        }
    }
    CHECK(place == count);
    CHECK(tl_slices(count, order, 0, 0, events->start, events->duration, self_time, events->ordinal, built.parent,
                    built.position, out_start, out[0], out[1], out[2], out[3], built.slot_of, &never) == TL_OK);
    free(self_time);
    free(lane_end);
    free(out_start);
    free(overlap);
    free(order);
    free(row_sizes);
    free(lane_rows);
    free(depth);
    free(overlaps);
    free(own);
    for (int i = 0; i < 4; i++) {
        free(out[i]);
    }
    return built;
}

/* Flows: each to the slice it belongs to, and starts to ends. */
static void build_flows(const reading *own, const lane_events *events, const built_rows *built, const uint32_t *lane_of)
{
    const uint64_t lanes = events->lanes, all = (uint64_t)own->count[TL_FLOWS];
    const uint32_t *track = own->columns[TL_FLOW_TRACK];
    uint64_t *bounds = room((lanes + 1) * 8), *sizes = room(lanes * 16), n = 0, longest = 0, arrows;
    uint32_t *rows = room(all * 4), *order = room(all * 4), *sorting = room(all * 4), *bound = room(all * 4);
    uint8_t *phase = room(all), *flags = room(all), *id_kind = room(all), moved;
    int64_t *start = room(all * 8), *id = room(all * 8);
    uint32_t *ordinal = room(all * 4), *category = room(all * 4), *pid = room(all * 4);
    for (uint64_t lane = 0; lane < lanes; lane++) {
        bounds[lane] = n;
        for (uint64_t i = 0; i < all; i++) {
            if (lane_of[track[i]] == lane) {
                rows[n++] = (uint32_t)i;
            }
        }
        longest = built->count[lane] > longest ? built->count[lane] : longest;
    }
    bounds[lanes] = n;
    CHECK(tl_take(1, n, own->columns[TL_FLOW_PHASE], rows, phase, &never) == TL_OK);
    CHECK(tl_take(1, n, own->columns[TL_FLOW_FLAGS], rows, flags, &never) == TL_OK);
    CHECK(tl_take(1, n, own->columns[TL_FLOW_ID_KIND], rows, id_kind, &never) == TL_OK);
    CHECK(tl_take(8, n, own->columns[TL_FLOW_ID_VALUE], rows, id, &never) == TL_OK);
    CHECK(tl_take(8, n, own->columns[TL_FLOW_START], rows, start, &never) == TL_OK);
    CHECK(tl_take(4, n, own->columns[TL_FLOW_ORDINAL], rows, ordinal, &never) == TL_OK);
    CHECK(tl_take(4, n, own->columns[TL_FLOW_CATEGORY], rows, category, &never) == TL_OK);
    for (uint64_t i = 0; i < n; i++) {
        CHECK(-TIME_LIMIT <= start[i] && start[i] <= TIME_LIMIT);
        pid[i] = own->scan.track_pid[track[rows[i]]];
        category[i] = 0;
    }
    CHECK(tl_order(lanes, bounds, 0, start, 0, ordinal, order, sorting, sizes, &moved, &never) == TL_OK);
    void *own_room = room(tl_bind_room(longest));
    CHECK(tl_bind(lanes, events->bounds, built->count, events->start, events->duration, events->ordinal, built->parent,
                  built->position, 0, bounds, order, phase, flags, start, ordinal, id_kind, id,
                  (uint64_t)own->promoted[CORRELATION], own->ordinals[CORRELATION], own->values[CORRELATION], bound,
                  own_room, &never) == TL_OK);
    for (uint64_t i = 0; i < n; i++) {
        CHECK(bound[i] == NONE || bound[i] < built->slices);
    }
    uint64_t size = 1;
    while (size <= 2 * n) {
        size *= 2;
    }
    uint32_t *table = room(size * 4), *next = room(n * 4), *last = room(n * 4), *source = room(n * 4);
    uint32_t *target = room(n * 4);
    int64_t counts[6] = {0};
    CHECK(tl_pair(n, phase, ordinal, category, id_kind, id, pid, start, 7, table, size, next, last, order, sorting,
                  counts, source, target, &arrows, &never) == TL_OK);
    CHECK(arrows <= n && (uint64_t)(counts[0] + counts[1] + counts[2]) == n);
    for (uint64_t i = 0; i < arrows; i++) {
        CHECK(id[source[i]] == id[target[i]]);
    }
    void *const all_rooms[] = {bounds, sizes, rows, order, sorting, bound, phase, flags, id_kind, start, id,
                               ordinal, category, pid, own_room, table, next, last, source, target};
    for (size_t i = 0; i < sizeof all_rooms / sizeof *all_rooms; i++) {
        free(all_rooms[i]);
    }
}

/* Promoted integers to the slots of their slices, dense and then sparse. */
static void build_promoted(const reading *own, const built_rows *built, uint32_t ordinals)
{
    const uint64_t n = (uint64_t)own->promoted[CORRELATION], words = built->slices / 64 + 1;
    uint64_t *present = room(words * 8), count = 0, bits = 0;
    int64_t *dense = room(built->slices * 8), *values = room(built->slices * 8), least = INT64_MAX, most = INT64_MIN;
    uint32_t *slots = room(built->slices * 4);
    memset(present, 0, words * 8);
    for (uint64_t i = 0; i < n; i++) {
        CHECK(own->ordinals[CORRELATION][i] < ordinals);
    }
    CHECK(tl_promote(8, n, own->ordinals[CORRELATION], own->values[CORRELATION], built->slot_of, dense, present, &least,
                     &most, &never) == TL_OK);
    CHECK(tl_compact(8, 0, built->slices, 0, dense, present, slots, values, &count, &never) == TL_OK);
    for (uint64_t i = 0; i < words; i++) {
        bits += (uint64_t)__builtin_popcountll(present[i]);
    }
    CHECK(bits == count);
    for (uint64_t i = 0; i < count; i++) {
        CHECK(slots[i] < built->slices && least <= values[i] && values[i] <= most && (!i || slots[i - 1] < slots[i]));
    }
    free(present);
    free(dense);
    free(values);
    free(slots);
}

/* The strings of two readings of one text, as one numbering; each number's text is that of its strings. */
static void build_strings(const reading *one, const reading *other)
{
    const uint64_t strings = (uint64_t)one->count[TL_STRINGS], n = 2 * strings;
    const uint8_t *const blobs[] = {one->scan.blob, other->scan.blob};
    const int64_t *const offsets[] = {one->scan.string_offset, other->scan.string_offset};
    uint64_t slot_count = 1, count = 0, done = 0;
    while (slot_count <= 2 * n) {
        slot_count *= 2;
    }
    const uint64_t size = 2 * (uint64_t)one->scan.blob_used + 1;
    uint16_t *table = room(n * 2), *owner_table = room(n * 2);
    uint32_t *string = room(n * 4), *owner_string = room(n * 4), *number = room(n * 4), *slots = room(slot_count * 4);
    uint8_t *text = room(size);
    int64_t *ends = room(n * 8);
    memset(slots, 0xFF, slot_count * 4);
    for (uint64_t i = 0; i < n; i++) {
        table[i] = (uint16_t)(i & 1);
        string[i] = (uint32_t)(i / 2);
    }
    CHECK(tl_intern(n, table, string, blobs, offsets, 7, slots, slot_count, owner_table, owner_string, number, &count,
                    &never) == TL_OK);
    CHECK(count == strings);
    for (uint64_t i = 0; i < n; i++) {
        CHECK(number[i] == i / 2);
    }
    CHECK(tl_texts(count, owner_table, owner_string, blobs, offsets, size, text, ends, &done, &never) == TL_OK);
    CHECK(done == count && ends[count - 1] == one->scan.blob_used);
    CHECK(!memcmp(text, one->scan.blob, (size_t)one->scan.blob_used));
    void *const all_rooms[] = {table, owner_table, string, owner_string, number, slots, text, ends};
    for (size_t i = 0; i < sizeof all_rooms / sizeof *all_rooms; i++) {
        free(all_rooms[i]);
    }
}

/* ---- inflating ------------------------------------------------------------------------------------------------ */

#define WINDOW (32 << 10)
#define INFLATED (64 << 10)

typedef struct {
    uint8_t text[INFLATED];
    int64_t size, bits; /* of the text, and of the data that were used */
    int32_t status;
} inflated;

/* Inflate data that comes in pieces of so many bytes, with so much room each time. */
static void inflate_in_pieces(const uint8_t *data, int64_t size, int64_t step, int64_t own_room, inflated *result)
{
    struct tl_inflate *state = room(sizeof *state);
    uint8_t *buffer = room((size_t)(WINDOW + own_room));
    int64_t begin = 0;
    memset(state, 0, sizeof *state);
    state->out = buffer;
    state->first = WINDOW;
    state->out_end = WINDOW + own_room;
    result->size = 0;
    for (;;) {
        const int64_t end = begin + step < size ? begin + step : size, before = state->at;
        uint8_t *piece = room((size_t)(end - begin));
        memcpy(piece, data + begin, (size_t)(end - begin));
        state->in = piece;
        state->in_size = end - begin;
        state->out_at = WINDOW;
        result->status = tl_inflate(state);
        free(piece);
        CHECK(before <= state->at && (state->at <= 8 * (end - begin) || result->status == TL_STOPPED));
        CHECK(WINDOW <= state->out_at && state->out_at <= state->out_end);
        CHECK(-1 <= state->block && state->block <= state->at);
        const int64_t n = state->out_at - WINDOW, left = INFLATED - result->size;
        memcpy(result->text + result->size, buffer + WINDOW, (size_t)(n < left ? n : left));
        result->size += n < left ? n : left;
        memmove(buffer, buffer + n, WINDOW);
        state->first = state->first > n ? state->first - n : 0;
        result->bits = 8 * begin + state->at;
        if (result->status != TL_NEED || result->size == INFLATED) {
            break;
        }
        if (!n && state->at == before) {
            if (end == size) {
                break;
            }
            step *= 2;
        }
        begin += state->at >> 3;
        state->at &= 7;
    }
    free(state);
    free(buffer);
}

static void inflate_input(const uint8_t *data, int64_t size, uint64_t how)
{
    static inflated one, other;
    inflate_in_pieces(data, size, size, INFLATED, &one);
    inflate_in_pieces(data, size, 1 + (int64_t)(how >> 32 & 63), 258 + (int64_t)(how >> 40 & 511), &other);
    CHECK(one.size == other.size && !memcmp(one.text, other.text, (size_t)one.size));
    if (one.size < INFLATED) {
        CHECK(one.status == other.status && (one.status == TL_STOPPED || one.bits == other.bits));
    }
}

/* ---- one input ----------------------------------------------------------------------------------------------- */

static void try_input(uint8_t *text, int64_t size)
{
    const input whole = {text, size};
    static reading one, other;
    const uint64_t how = digest_of(UINT64_C(0xCBF29CE484222325), text, (size_t)size);
    const int64_t longest = how >> 8 & 15 ? LONGEST : (int64_t)(how >> 16 & 255);
    const int64_t cut = size ? (int64_t)((how >> 24) % (uint64_t)size) : 0;
    begin_reading(&one, 64, how);
    read_piece(&one, &whole, 0, size, longest);
    begin_reading(&other, (int64_t)1 << (how & 3), ~how);
    read_piece(&other, &whole, read_piece(&other, &whole, 0, cut, longest), size, longest);
    compare_readings(&one, &other);
    uint32_t *lane_of = room((uint64_t)one.count[TL_TRACKS] * 8);
    lane_events events = events_by_lane(&one, lane_of);
    match_events(&events);
    built_rows built = build_rows(&events, one.scan.ordinal);
    build_flows(&one, &events, &built, lane_of);
    build_promoted(&one, &built, one.scan.ordinal);
    build_strings(&one, &other);
    void *const all_rooms[] = {lane_of, events.bounds, events.phase, events.kind, events.ordinal, events.name,
                               events.start, events.duration, built.count, built.parent, built.position, built.slot_of};
    for (size_t i = 0; i < sizeof all_rooms / sizeof *all_rooms; i++) {
        free(all_rooms[i]);
    }
    end_reading(&one);
    end_reading(&other);
    inflate_input(text, size, how);
    if (size) { /* and as codes that need no header */
        uint8_t *codes = room((size_t)size);
        memcpy(codes, text, (size_t)size);
        codes[0] = (uint8_t)((codes[0] & ~7) | 2 | (how & 1));
        inflate_input(codes, size, how);
        free(codes);
    }
}

/* ---- mutants ------------------------------------------------------------------------------------------------- */

static input kept[MAX_KEPT];
static uint64_t kept_count;

static const char *const TOKENS[] = {
    "{", "}", "[", "]", "\"", ",", ":", "\\", "\n", " ", "\t", "-", ".", "e", "E+", "0", "00", "9", "\x01", "\x7f",
    "\xff", "\xc3\xa9", "\xed\xa0\x80", "\xf0\x9f\x98\x80", "null", "true", "false", "NaN", "1e999", "1e-400", "-0",
    "\\u00e9", "\\ud83d\\ude00", "\\ud800", "\\u0022", "\\n", "\\x", "},{", "{\"ph\":\"X\",", "\"ph\":\"B\"",
    "\"ph\":\"E\"", "\"ph\":\"b\"", "\"ph\":\"e\"", "\"ph\":\"s\"", "\"ph\":\"t\"", "\"ph\":\"f\"", "\"ph\":\"C\"",
    "\"ph\":\"i\"", "\"ph\":\"M\"", "\"ph\":\"S\"", "\"ph\":\"F\"", "\"ph\":\"n\"", "\"ts\":", "\"dur\":", "\"pid\":1",
    "\"tid\":2", "\"id\":7", "\"id2\":{\"local\":\"0x1\"}", "\"scope\":\"a\"", "\"bp\":\"e\"", "\"s\":\"p\"",
    "\"cname\":\"good\"", "\"args\":{", "\"attr\":{", "\"args\":null", "\"correlation\":7", "\"correlation\":\"7\"",
    "\"External id\":3", "\"external id\":4", "\"bytes\":9", "\"occupancy\":0.5", "\"grid\":[1, 2.0]",
    "\"Input Dims\":[[1,2],[]]", "\"cat\":\"kernel\"", "\"cat\":\"cpu_op\"", "\"name\":\"k\"", "\"a\":1,\"a\":2"};

static const char *const NUMBERS[] = {
    "0", "1", "-1", "5", "10", "0.0005", "1.0005", "2.5", "9007199254740.992", "2305843009213693.952",
    "4611686018427387.902", "4611686018427387.903", "4611686018427387.904", "4611686018427387.905",
    "-4611686018427387.902", "-4611686018427387.903", "-4611686018427387.904", "-4611686018427387.905",
    "4611686018427387903e-3", "-4611686018427387903e-3", "4611686018427387904e-3", "9223372036854775.807",
    "9223372036854775.808", "-9223372036854775.808", "9223372036854775807", "-9223372036854775808",
    "18446744073709551615", "99999999999999999999", "1e18", "1e-3", "1e15", "-1e15", "1e16", "1E+25", "1.7976e308",
    "1717171717171717.1235", "1700000000000000", "1e999999", "0e999999999999"};

#define ONE_OF(list) list[chance(sizeof list / sizeof *list)]

static int64_t put(uint8_t *text, int64_t size, int64_t at, int64_t removed, const void *piece, int64_t length)
{
    removed = removed > size - at ? size - at : removed;
    length = length > LONGEST - (size - removed) ? LONGEST - (size - removed) : length;
    memmove(text + at + length, text + at + removed, (size_t)(size - at - removed));
    memcpy(text + at, piece, (size_t)length);
    return size - removed + length;
}

static int is_of_number(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || strchr("+-.eE", byte) != 0;
}

/* Change a text in one place; return its new size. */
static int64_t mutate(uint8_t *text, int64_t size)
{
    static uint8_t piece[LONGEST];
    int64_t at = (int64_t)chance((uint64_t)size + 1);
    const int64_t some = (int64_t)chance(8) ? (int64_t)chance(8) : (int64_t)chance(256);
    const char *token = ONE_OF(TOKENS);
    const input *other = &kept[chance(kept_count)];
    switch (chance(9)) {
    case 0: /* a bit */
        if (at < size) {
            text[at] ^= (uint8_t)(1 << chance(8));
        }
        return size;
    case 1:
        return put(text, size, at, 0, token, (int64_t)strlen(token));
    case 2:
        return put(text, size, at, some, token, (int64_t)strlen(token));
    case 3:
        return put(text, size, at, some, "", 0);
    case 4: { /* some of it twice, elsewhere */
        const int64_t length = some < size - at ? some : size - at;
        memcpy(piece, text + at, (size_t)length);
        return put(text, size, (int64_t)chance((uint64_t)size + 1), 0, piece, length);
    }
    case 5: { /* from here on another text */
        const int64_t from = (int64_t)chance((uint64_t)other->size + 1);
        return put(text, size, at, size, other->text + from, other->size - from);
    }
    case 6: { /* an event of another text, before an event */
        const uint8_t *begin = memchr(other->text + chance((uint64_t)other->size + 1) * 3 / 4, '{', 1);
        const int64_t from = begin ? begin - other->text : (int64_t)chance((uint64_t)other->size + 1);
        const uint8_t *end = memchr(other->text + from, '\n', (size_t)(other->size - from));
        const uint8_t *line = memchr(text + at, '\n', (size_t)(size - at));
        return put(text, size, line ? line - text : at, 0, other->text + from,
                   (end ? end - other->text : other->size) - from);
    }
    default: { /* a number for a number */
        const char *number = ONE_OF(NUMBERS);
        while (at < size && !is_of_number(text[at])) {
            at++;
        }
        int64_t end = at;
        while (end < size && is_of_number(text[end])) {
            end++;
        }
        return put(text, size, at, end - at, number, (int64_t)strlen(number));
    }
    }
}

/* ---- the runs ------------------------------------------------------------------------------------------------ */

typedef struct {
    uint64_t number, size;
    uint8_t text[LONGEST];
} current_input;

static current_input *current; /* mapped from a file: it stays however the process ends */

static void keep(const uint8_t *text, int64_t size)
{
    const uint64_t at = kept_count < MAX_KEPT ? kept_count++ : chance(MAX_KEPT);
    free(kept[at].text);
    kept[at].text = room((size_t)size);
    kept[at].size = size;
    memcpy(kept[at].text, text, (size_t)size);
}

static void write_kept(const char *folder, const uint8_t *text, int64_t size)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/%016llx.txt", folder,
             (unsigned long long)digest_of(UINT64_C(0xCBF29CE484222325), text, (size_t)size));
    FILE *file = fopen(name, "wb");
    if (file) {
        fwrite(text, 1, (size_t)size, file);
        fclose(file);
    }
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void be_patient(void)
{
    const struct itimerval patience = {{0, 0}, {HANG_SECONDS, 0}};
    setitimer(ITIMER_PROF, &patience, 0); /* SIGPROF ends the process */
}

static void try_current(void)
{
    memset(hits, 0, sizeof hits);
    last_place = 0;
    try_input(current->text, (int64_t)current->size);
}

static void take_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    CHECK(file);
    current->size = fread(current->text, 1, LONGEST, file);
    fclose(file);
}

static void map_current(const char *path)
{
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && !ftruncate(file, sizeof *current));
    current = mmap(0, sizeof *current, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(current != MAP_FAILED);
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "one")) {
        current = room(sizeof *current);
        for (int i = 2; i < argc; i++) {
            take_file(argv[i]);
            try_current();
        }
        return 0;
    }
    if (argc < 8 || strcmp(argv[1], "run")) {
        fprintf(stderr, "see the head of native_core.c\n");
        return 2;
    }
    const double seconds = atof(argv[3]);
    const uint64_t inputs = strtoull(argv[4], 0, 10);
    const char *folder = argv[6];
    uint64_t number = 0;
    state = (strtoull(argv[2], 0, 10) + 1) * UINT64_C(0x9E3779B97F4A7C15);
    map_current(argv[5]);
    be_patient();
    for (int i = 7; i < argc; i++) {
        take_file(argv[i]);
        keep(current->text, (int64_t)current->size);
    }
    const uint64_t files = kept_count;
    while (number < inputs && (number % 64 || processor_seconds() < seconds)) {
        const input *from = &kept[number < files ? number : chance(kept_count)];
        current->size = (uint64_t)from->size;
        memcpy(current->text, from->text, (size_t)from->size);
        for (uint64_t left = number < files ? 0 : 1 + chance(1 + chance(8)); left; left--) {
            current->size = (uint64_t)mutate(current->text, (int64_t)current->size);
        }
        current->number = number++;
        try_current();
        if (is_new_ground()) {
            if (number > files) {
                keep(current->text, (int64_t)current->size);
            }
            if (strcmp(folder, "-")) {
                write_kept(folder, current->text, (int64_t)current->size);
            }
        }
        if (number % 1000 == 0) {
            be_patient();
        }
    }
    printf("%llu inputs, %llu kept, %.1f s\n", (unsigned long long)number, (unsigned long long)kept_count,
           processor_seconds());
    return 0;
}
