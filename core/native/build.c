/* The loops that turn events into lanes, rows, arrows and sparse columns.
 *
 * Each exported function has a plain Python twin of the same name in core/index/plain.py, which says the
 * same more slowly and is the place to read what a function is for. Here stands only how it is fast.
 * An entry is an index into columns that the caller gives; NO_ENTRY is none. `cancel` is a byte that the
 * caller may set from another thread; it is looked at every 65,536 entries or more often.
 */
#include "native.h"

#define NO_ENTRY UINT32_MAX
#define MAX_OPEN_SEARCHED 256  /* open begins, of the innermost, among which an asynchronous end looks for its own */
#define LONG_TIME UINT32_C(0xFFFFFFFE) /* format.LONG: a time that does not fit 32 bits */

typedef const volatile uint8_t *cancel_flag;

static inline int is_cancelled(cancel_flag cancel, uint64_t done)
{
    return (done & 0xFFFF) == 0 && *cancel;
}

static inline uint32_t lowest_bit(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}

/* -- order ---------------------------------------------------------------------------------------------- */

typedef struct {
    const int64_t *first;   /* ascending */
    const int64_t *second;  /* descending; NULL: not looked at */
    const uint32_t *third;  /* ascending */
} sort_keys;

static inline int comes_before(const sort_keys *keys, uint32_t a, uint32_t b)
{
    if (keys->first && keys->first[a] != keys->first[b]) {
        return keys->first[a] < keys->first[b];
    }
    if (keys->second && keys->second[a] != keys->second[b]) {
        return keys->second[a] > keys->second[b];
    }
    return keys->third[a] < keys->third[b];
}

static uint64_t run_end(const sort_keys *keys, const uint32_t *order, uint64_t begin, uint64_t n,
                        cancel_flag cancel)
{
    uint64_t end = begin + 1;
    while (end < n && !comes_before(keys, order[end], order[end - 1]) && !is_cancelled(cancel, end)) {
        end++;
    }
    return end;
}

/* Sort entries by merging their ascending runs two by two until there is one. Lanes are nearly sorted:
 * 1.13 M slices of a real one stand in 95 runs, so that 7 passes suffice. `room` is as long as `order`.
 */
static int merge_sort(const sort_keys *keys, uint32_t *order, uint32_t *room, uint64_t n, cancel_flag cancel)
{
    uint32_t *from = order, *to = room;
    while (n > 1) {
        uint64_t begin = 0;
        while (begin < n) {
            const uint64_t middle = run_end(keys, from, begin, n, cancel);
            if (middle == n && begin == 0) {
                if (from != order) {
                    memcpy(order, from, n * sizeof *order);
                }
                return TL_OK;
            }
            const uint64_t end = middle < n ? run_end(keys, from, middle, n, cancel) : n;
            if (*cancel) {
                return TL_CANCELLED;
            }
            uint64_t a = begin, b = middle;
            for (uint64_t at = begin; at < end; at++) {
                if (is_cancelled(cancel, at)) {
                    return TL_CANCELLED;
                }
                const int second = a == middle || (b < end && comes_before(keys, from[b], from[a]));
                to[at] = second ? from[b++] : from[a++];
            }
            begin = end;
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    return TL_OK;
}

/* The entries of each lane by (kind, start, -duration, ordinal): kinds are 0, 1 and 2, and 2 is not sorted
 * further. `kind` and `duration` may be NULL. `sizes`: per lane how many are of kind 0 and of kind 1.
 */
TL_API int tl_order(uint64_t lanes, const uint64_t *bounds, const uint8_t *kind, const int64_t *start,
                    const int64_t *duration, const uint32_t *ordinal, uint32_t *order, uint32_t *room,
                    uint64_t *sizes, uint8_t *moved, cancel_flag cancel)
{
    const sort_keys keys = {start, duration, ordinal};
    *moved = 0;
    for (uint64_t lane = 0; lane < lanes; lane++) {
        const uint64_t begin = bounds[lane], end = bounds[lane + 1];
        uint64_t next[3] = {begin, end, end};
        if (kind) {
            uint64_t count[3] = {0, 0, 0};
            for (uint64_t i = begin; i < end; i++) {
                if (is_cancelled(cancel, i)) {
                    return TL_CANCELLED;
                }
                count[kind[i]]++;
            }
            next[1] = begin + count[0];
            next[2] = next[1] + count[1];
        }
        const uint64_t instants = next[1], others = next[2];
        for (uint64_t i = begin; i < end; i++) {
            if (is_cancelled(cancel, i)) {
                return TL_CANCELLED;
            }
            order[next[kind ? kind[i] : 0]++] = (uint32_t)i;
        }
        sizes[2 * lane] = instants - begin;
        sizes[2 * lane + 1] = others - instants;
        if (merge_sort(&keys, order + begin, room, instants - begin, cancel) != TL_OK ||
            merge_sort(&keys, order + instants, room, others - instants, cancel) != TL_OK) {
            return TL_CANCELLED;
        }
        for (uint64_t i = begin; i < end && !*moved; i++) {
            if (is_cancelled(cancel, i)) {
                return TL_CANCELLED;
            }
            *moved = order[i] != i;
        }
    }
    return TL_OK;
}

/* -- moving columns ------------------------------------------------------------------------------------- */

#define FOR_EACH_WIDTH(DO)      \
    switch (width) {            \
    case 1: DO(uint8_t) break;  \
    case 2: DO(uint16_t) break; \
    case 4: DO(uint32_t) break; \
    default: DO(uint64_t)       \
    }

/* out[i] = values[index[i]] */
TL_API int tl_take(uint64_t width, uint64_t n, const void *values, const uint32_t *index, void *out,
                   cancel_flag cancel)
{
#define TAKE(TYPE)                                                        \
    for (uint64_t i = 0; i < n; i++) {                                    \
        if (is_cancelled(cancel, i)) {                                    \
            return TL_CANCELLED;                                          \
        }                                                                 \
        ((TYPE *)out)[i] = ((const TYPE *)values)[index[i]];              \
    }
    FOR_EACH_WIDTH(TAKE)
    return TL_OK;
}

/* out[index[i]] = values[i] */
TL_API int tl_put(uint64_t width, uint64_t n, const void *values, const uint32_t *index, void *out,
                  cancel_flag cancel)
{
#define PUT(TYPE)                                                         \
    for (uint64_t i = 0; i < n; i++) {                                    \
        if (is_cancelled(cancel, i)) {                                    \
            return TL_CANCELLED;                                          \
        }                                                                 \
        ((TYPE *)out)[index[i]] = ((const TYPE *)values)[i];              \
    }
    FOR_EACH_WIDTH(PUT)
    return TL_OK;
}

/* The place of each event: the next free one of its track. `next` is moved on. */
TL_API int tl_places(uint64_t n, const uint32_t *track, uint64_t *next, uint32_t *place, cancel_flag cancel)
{
    for (uint64_t i = 0; i < n; i++) {
        if (is_cancelled(cancel, i)) {
            return TL_CANCELLED;
        }
        place[i] = (uint32_t)next[track[i]]++;
    }
    return TL_OK;
}

/* -- strings -------------------------------------------------------------------------------------------- */

/* The strings of all reading threads: of each thread its texts, one after the other, and where they begin. */
typedef struct {
    const uint8_t *const *blobs;
    const int64_t *const *offsets;
} string_tables;

static inline const uint8_t *string_at(const string_tables *tables, uint32_t table, uint32_t string,
                                       uint64_t *length)
{
    const int64_t *offset = tables->offsets[table] + string;
    *length = (uint64_t)(offset[1] - offset[0]);
    return tables->blobs[table] + offset[0];
}

static uint64_t hash_of(const uint8_t *text, uint64_t length, uint64_t seed)
{
    uint64_t hash = seed ^ length * UINT64_C(0x9E3779B97F4A7C15);
    for (; length >= 8; length -= 8, text += 8) {
        hash = (hash ^ tl_load64(text)) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    uint64_t rest = 0;
    memcpy(&rest, text, length);
    hash = (hash ^ tl_load64(&rest)) * UINT64_C(0xD6E8FEB86659FD93);
    return hash ^ hash >> 32;
}

/* The number of each of n strings, counted from 0 in the order in which texts come first. `owner_table` and
 * `owner_string`: by number, where its text stands; `slots`: a hash table of numbers with more places, a power
 * of two, than there are texts. Texts are compared in full: neither hash nor seed decide anything.
 */
TL_API int tl_intern(uint64_t n, const uint16_t *table, const uint32_t *string, const uint8_t *const *blobs,
                     const int64_t *const *offsets, uint64_t seed, uint32_t *slots, uint64_t slot_count,
                     uint16_t *owner_table, uint32_t *owner_string, uint32_t *number, uint64_t *count,
                     cancel_flag cancel)
{
    const string_tables tables = {blobs, offsets};
    for (uint64_t i = 0; i < n; i++) {
        if (is_cancelled(cancel, i)) {
            return TL_CANCELLED;
        }
        uint64_t length, other_length;
        const uint8_t *text = string_at(&tables, table[i], string[i], &length);
        uint64_t at = hash_of(text, length, seed) & (slot_count - 1);
        for (; slots[at] != NO_ENTRY; at = (at + 1) & (slot_count - 1)) {
            const uint32_t known = slots[at];
            const uint8_t *other = string_at(&tables, owner_table[known], owner_string[known], &other_length);
            if (length == other_length && memcmp(text, other, length) == 0) {
                break;
            }
        }
        if (slots[at] == NO_ENTRY) {
            slots[at] = (uint32_t)*count;
            owner_table[*count] = table[i];
            owner_string[*count] = string[i];
            (*count)++;
        }
        number[i] = slots[at];
    }
    return TL_OK;
}

/* The texts of n strings, one after the other, as far as there is room: `ends` says where each of the `done`
 * ends. The first is not cut off: `room` must hold it.
 */
TL_API int tl_texts(uint64_t n, const uint16_t *table, const uint32_t *string, const uint8_t *const *blobs,
                    const int64_t *const *offsets, uint64_t room, uint8_t *out, int64_t *ends, uint64_t *done,
                    cancel_flag cancel)
{
    const string_tables tables = {blobs, offsets};
    uint64_t size = 0, length;
    for (*done = 0; *done < n; ++*done) {
        if (is_cancelled(cancel, *done)) {
            return TL_CANCELLED;
        }
        const uint8_t *text = string_at(&tables, table[*done], string[*done], &length);
        if (size + length > room) {
            break;
        }
        memcpy(out + size, text, length);
        size += length;
        ends[*done] = (int64_t)size;
    }
    return TL_OK;
}

/* -- begins and ends ------------------------------------------------------------------------------------ */

/* Take the begin that an end closes off the open ones: the innermost of its name, if both have one, else the
 * innermost; NO_ENTRY where there is none.
 */
static uint32_t closed_by_name(uint32_t *open, uint32_t *partner, const uint32_t *name, uint32_t own)
{
    uint32_t inner = NO_ENTRY, at = *open;
    for (int depth = 0; at != NO_ENTRY; depth++) {
        if (depth == MAX_OPEN_SEARCHED) {
            return NO_ENTRY;
        }
        if (own == 0 || name[at] == 0 || name[at] == own) {
            *(inner == NO_ENTRY ? open : &partner[inner]) = partner[at];
            return at;
        }
        inner = at;
        at = partner[at];
    }
    return NO_ENTRY;
}

/* The entry that each begin is closed by, and the begin that each end closes. While a begin is open its
 * `partner` is the begin around it, so that the stack needs no room of its own.
 */
TL_API int tl_match(uint64_t stacks, const uint64_t *bounds, const uint8_t *phase, const uint32_t *name,
                    uint32_t *partner, cancel_flag cancel)
{
    for (uint64_t stack = 0; stack < stacks; stack++) {
        uint32_t open = NO_ENTRY;
        for (uint64_t i = bounds[stack]; i < bounds[stack + 1]; i++) {
            if (is_cancelled(cancel, i)) {
                return TL_CANCELLED;
            }
            partner[i] = NO_ENTRY;
            switch (phase[i]) {
            case 'B': case 'b': case 'S':
                partner[i] = open;
                open = (uint32_t)i;
                break;
            case 'E': case 'e': case 'F': {
                const uint32_t begin = closed_by_name(&open, partner, name, phase[i] == 'E' ? 0 : name[i]);
                if (begin != NO_ENTRY) {
                    partner[begin] = (uint32_t)i;
                    partner[i] = begin;
                }
            }
            }
        }
        for (uint64_t closed = 0; open != NO_ENTRY; closed++) {
            if (is_cancelled(cancel, closed)) {
                return TL_CANCELLED;
            }
            const uint32_t around = partner[open];
            partner[open] = NO_ENTRY;
            open = around;
        }
    }
    return TL_OK;
}

/* -- rows ----------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t end;
    int64_t reach; /* up to where its children cover it */
    uint32_t entry;
    uint32_t row;
} open_slice;

typedef struct {
    int64_t end;
    uint32_t row;
} busy_row;

/* A heap: the row that becomes free first stands at 0. */
static void add_busy(busy_row *heap, uint64_t count, busy_row added)
{
    uint64_t at = count;
    while (at && heap[(at - 1) / 2].end > added.end) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = added;
}

static void remove_first_busy(busy_row *heap, uint64_t count)
{
    const busy_row last = heap[--count];
    uint64_t at = 0, child;
    while ((child = 2 * at + 1) < count) {
        child += child + 1 < count && heap[child + 1].end < heap[child].end;
        if (last.end <= heap[child].end) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
}

/* Two bitmaps: the rows that are taken, and the words of the first of which all are. */
typedef struct {
    uint64_t *taken;
    uint64_t *full;
} row_map;

static uint32_t lowest_free_row(const row_map *rows, uint64_t row)
{
    uint64_t word = row / 64, free = ~rows->taken[word] & (UINT64_MAX << row % 64);
    if (!free) {
        uint64_t at = ++word / 64, some = ~rows->full[at] & (UINT64_MAX << word % 64);
        while (!some) {
            some = ~rows->full[++at];
        }
        word = at * 64 + lowest_bit(some);
        free = ~rows->taken[word];
    }
    return (uint32_t)(word * 64 + lowest_bit(free));
}

static void take_row(const row_map *rows, uint32_t row)
{
    uint64_t *word = rows->taken + row / 64;
    *word |= UINT64_C(1) << row % 64;
    if (*word == UINT64_MAX) {
        rows->full[row / 4096] |= UINT64_C(1) << row / 64 % 64;
    }
}

static void release_row(const row_map *rows, uint32_t row)
{
    rows->taken[row / 64] &= ~(UINT64_C(1) << row % 64);
    rows->full[row / 4096] &= ~(UINT64_C(1) << row / 64 % 64);
}

static uint64_t taken_words(uint64_t n)
{
    return n / 64 + 2;
}

static uint64_t full_words(uint64_t n)
{
    return taken_words(n) / 64 + 2;
}

/* How many bytes of room tl_rows needs where the longest lane has n slices; what is not used is not
 * touched.
 */
TL_API uint64_t tl_rows_room(uint64_t n)
{
    return n * (sizeof(open_slice) + sizeof(busy_row)) + 8 * (taken_words(n) + full_words(n));
}

/* Parent, self time, overlap, place and row of the slices of each lane, which stand in entries
 * bounds[lane] .. bounds[lane] + count[lane] by (start, -duration, ordinal).
 *
 * `position`: per entry its place in the order of (lane, row, start), from 0; `order`: the entry at each
 * place. `row_sizes`: the slices of each row, lane after lane; per lane: rows, greatest number of slices
 * open at once, overlapping slices, last end. `least`: per entry the topmost row that it may take, or NULL.
 */
TL_API int tl_rows(uint64_t lanes, const uint64_t *bounds, const uint64_t *count, const int64_t *start,
                   const int64_t *duration, const uint32_t *least, uint32_t *parent, int64_t *self_time, uint8_t *overlap,
                   uint32_t *position, uint32_t *order, uint32_t *row_sizes, uint32_t *lane_rows,
                   uint32_t *lane_depth, uint64_t *lane_overlaps, int64_t *lane_end, void *room,
                   cancel_flag cancel)
{
    uint64_t placed = 0;
    for (uint64_t lane = 0; lane < lanes; lane++) {
        const uint64_t begin = bounds[lane], n = count[lane];
        open_slice *open = room;
        busy_row *busy = (busy_row *)(open + n);
        const row_map rows = {(uint64_t *)(busy + n), (uint64_t *)(busy + n) + taken_words(n)};
        memset(rows.taken, 0, 8 * (taken_words(n) + full_words(n)));
        uint64_t open_count = 0, busy_count = 0, overlaps = 0;
        uint32_t row_count = 0, depth = 0;
        int64_t last_end = INT64_MIN;
        for (uint64_t i = begin; i < begin + n; i++) {
            if (is_cancelled(cancel, i)) {
                return TL_CANCELLED;
            }
            const int64_t from = start[i], end = from + duration[i];
            while (busy_count && busy[0].end <= from) {
                release_row(&rows, busy[0].row);
                remove_first_busy(busy, busy_count--);
            }
            overlap[i] = busy_count && busy[0].end < end;
            overlaps += overlap[i];
            depth = busy_count + 1 > depth ? (uint32_t)busy_count + 1 : depth;
            last_end = end > last_end ? end : last_end;
            /* What ends before this one holds neither it nor, as this one is open longer, any later slice;
             * a slice of length zero lies only in what is still open after it. */
            while (open_count && open[open_count - 1].end < end + (end == from)) {
                open_count--;
            }
            open_slice *around = open_count ? open + open_count - 1 : NULL;
            parent[i] = around ? around->entry : NO_ENTRY;
            self_time[i] = duration[i];
            if (around && end > around->reach) {
                self_time[around->entry] -= end - (from > around->reach ? from : around->reach);
                around->reach = end;
            }
            const uint64_t below = around ? (uint64_t)around->row + 1 : 0, top = least ? least[i] : 0;
            const uint32_t row = lowest_free_row(&rows, below > top ? below : top);
            while (row_count <= row) {
                row_sizes[row_count++] = 0;
            }
            row_sizes[row]++;
            position[i] = row; /* until the sizes of all rows are known */
            if (end > from) {
                take_row(&rows, row);
                add_busy(busy, busy_count++, (busy_row){end, row});
                open[open_count++] = (open_slice){end, INT64_MIN, (uint32_t)i, row};
            }
        }
        uint32_t *next = room;
        for (uint64_t row = 0, first = placed; row < row_count; first += row_sizes[row++]) {
            next[row] = (uint32_t)first;
        }
        for (uint64_t i = begin; i < begin + n; i++) {
            if (is_cancelled(cancel, i)) {
                return TL_CANCELLED;
            }
            position[i] = next[position[i]]++;
            order[position[i]] = (uint32_t)i;
        }
        placed += n;
        row_sizes += row_count;
        lane_rows[lane] = row_count;
        lane_depth[lane] = depth;
        lane_overlaps[lane] = overlaps;
        lane_end[lane] = last_end;
    }
    return TL_OK;
}

/* The columns of n slices from position `first` on, as the index stores them; `order` names their entries.
 * `base` is the position that place 0 of `position` has. `slot_of`: per ordinal of an event its slice's
 * position. Times that do not fit 32 bits read LONG_TIME.
 */
TL_API int tl_slices(uint64_t n, const uint32_t *order, uint64_t first, uint64_t base, const int64_t *start,
                     const int64_t *duration, const int64_t *self_time, const uint32_t *ordinal,
                     const uint32_t *parent, const uint32_t *position, int64_t *out_start,
                     uint32_t *out_duration, uint32_t *out_self, uint32_t *out_ordinal, uint32_t *out_parent,
                     uint32_t *slot_of, cancel_flag cancel)
{
    for (uint64_t i = 0; i < n; i++) {
        if (is_cancelled(cancel, i)) {
            return TL_CANCELLED;
        }
        const uint32_t entry = order[i];
        out_start[i] = start[entry];
        out_duration[i] = duration[entry] < LONG_TIME ? (uint32_t)duration[entry] : LONG_TIME;
        out_self[i] = self_time[entry] < LONG_TIME ? (uint32_t)self_time[entry] : LONG_TIME;
        out_ordinal[i] = ordinal[entry];
        out_parent[i] = parent[entry] == NO_ENTRY ? NO_ENTRY : (uint32_t)base + position[parent[entry]];
        slot_of[ordinal[entry]] = (uint32_t)(first + i);
    }
    return TL_OK;
}

/* -- flows ---------------------------------------------------------------------------------------------- */

enum { FLOW_BINDS_ENCLOSING = 1, ID_INTEGER = 1, ID_LOCAL = 3 }; /* columns.EventFlag, columns.IdKind */

/* Slices that begin at one stamp, by ordinal, and those of them whose correlation is known, by that. */
typedef struct {
    uint32_t *ordinal, *by_ordinal, *known_ordinal, *known_entry, *by_value, *sort_room;
    int64_t *value;
    uint64_t first, count, known;
} stamp;

static int prepare_stamp(stamp *at, uint64_t first, uint64_t last, const uint32_t *ordinal, uint64_t values,
                         const uint32_t *value_ordinal, const int64_t *value, cancel_flag cancel)
{
    at->first = first;
    at->count = last - first;
    at->known = 0;
    for (uint64_t k = 0; k < at->count; k++) {
        if (is_cancelled(cancel, k)) {
            return TL_CANCELLED;
        }
        at->ordinal[k] = ordinal[first + k];
        at->by_ordinal[k] = (uint32_t)k;
        uint64_t low = 0, high = values;
        while (low < high) {
            const uint64_t middle = (low + high) / 2;
            if (value_ordinal[middle] < at->ordinal[k]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low < values && value_ordinal[low] == at->ordinal[k]) {
            at->value[at->known] = value[low];
            at->known_ordinal[at->known] = at->ordinal[k];
            at->known_entry[at->known] = (uint32_t)(first + k);
            at->by_value[at->known] = (uint32_t)at->known;
            at->known++;
        }
    }
    const sort_keys by_ordinal = {NULL, NULL, at->ordinal}, by_value = {at->value, NULL, at->known_ordinal};
    return merge_sort(&by_ordinal, at->by_ordinal, at->sort_room, at->count, cancel) ||
           merge_sort(&by_value, at->by_value, at->sort_room, at->known, cancel);
}

/* The slice whose correlation is the flow's id, of several the nearest before it in the file, else the first
 * after it; without such the nearest before it of all; else `otherwise`.
 */
static uint32_t choose_at_stamp(const stamp *at, uint32_t otherwise, uint32_t ordinal, int has_id, int64_t id)
{
    uint64_t low = 0, high = at->known;
    while (has_id && low < high) {
        const uint64_t middle = (low + high) / 2;
        const uint32_t k = at->by_value[middle];
        if (at->value[k] < id || (at->value[k] == id && at->known_ordinal[k] < ordinal)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (has_id && low && at->value[at->by_value[low - 1]] == id) {
        return at->known_entry[at->by_value[low - 1]];
    }
    if (has_id && low < at->known && at->value[at->by_value[low]] == id) {
        return at->known_entry[at->by_value[low]];
    }
    for (low = 0, high = at->count; low < high;) {
        const uint64_t middle = (low + high) / 2;
        if (at->ordinal[at->by_ordinal[middle]] < ordinal) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low ? (uint32_t)at->first + at->by_ordinal[low - 1] : otherwise;
}

/* How many bytes of room tl_bind needs where the longest lane has n slices. */
TL_API uint64_t tl_bind_room(uint64_t n)
{
    return n * (sizeof(int64_t) + 6 * sizeof(uint32_t));
}

/* The slice that each flow event of each lane belongs to, as its position; NO_ENTRY for none. Slices are as
 * tl_rows takes and returns them; `flow_order` has the flow events of each lane by start. `value_ordinal`,
 * ascending, and `value`: the events whose correlation is known.
 */
TL_API int tl_bind(uint64_t lanes, const uint64_t *bounds, const uint64_t *count, const int64_t *start,
                   const int64_t *duration, const uint32_t *ordinal, const uint32_t *parent,
                   const uint32_t *position, uint64_t base, const uint64_t *flow_bounds,
                   const uint32_t *flow_order, const uint8_t *phase, const uint8_t *flags,
                   const int64_t *flow_start, const uint32_t *flow_ordinal, const uint8_t *id_kind,
                   const int64_t *id_value, uint64_t values, const uint32_t *value_ordinal,
                   const int64_t *value, uint32_t *bound, void *room, cancel_flag cancel)
{
    uint64_t longest = 0;
    for (uint64_t lane = 0; lane < lanes; lane++) {
        longest = count[lane] > longest ? count[lane] : longest;
    }
    uint32_t *columns = (uint32_t *)((int64_t *)room + longest);
    stamp at = {columns,
                columns + longest,
                columns + 2 * longest,
                columns + 3 * longest,
                columns + 4 * longest,
                columns + 5 * longest,
                room, 0, 0, 0};
    for (uint64_t lane = 0; lane < lanes; lane++) {
        const uint64_t end = bounds[lane] + count[lane];
        uint64_t first = bounds[lane], last = first; /* the slices that begin at the stamp */
        uint32_t inner = NO_ENTRY; /* the last that begins up to it, or the innermost around that is still open */
        for (uint64_t k = flow_bounds[lane]; k < flow_bounds[lane + 1]; k++) {
            if (is_cancelled(cancel, k)) {
                return TL_CANCELLED;
            }
            const uint32_t flow = flow_order[k];
            const int64_t time = flow_start[flow];
            if (k == flow_bounds[lane] || time != flow_start[flow_order[k - 1]]) {
                const uint64_t before = last;
                for (first = last; first < end && start[first] < time; first++) {
                    if (is_cancelled(cancel, first)) {
                        return TL_CANCELLED;
                    }
                }
                for (last = first; last < end && start[last] == time; last++) {
                    if (is_cancelled(cancel, last)) {
                        return TL_CANCELLED;
                    }
                }
                inner = last > before ? (uint32_t)last - 1 : inner;
                if (last - first > 1 && prepare_stamp(&at, first, last, ordinal, values, value_ordinal, value,
                                                      cancel) != TL_OK) {
                    return TL_CANCELLED;
                }
                /* What has ended holds no later stamp either, so nothing is climbed over twice. */
                uint64_t ended = 0;
                while (first == last && inner != NO_ENTRY && start[inner] + duration[inner] <= time) {
                    if (is_cancelled(cancel, ++ended)) {
                        return TL_CANCELLED;
                    }
                    inner = parent[inner];
                }
            }
            uint32_t found = inner;
            if (phase[flow] == 'f' && !(flags[flow] & FLOW_BINDS_ENCLOSING)) {
                found = first < end ? (uint32_t)first : NO_ENTRY;
            }
            if (last - first > 1) {
                found = choose_at_stamp(&at, found, flow_ordinal[flow], id_kind[flow] == ID_INTEGER,
                                        id_value[flow]);
            }
            bound[flow] = found == NO_ENTRY ? NO_ENTRY : (uint32_t)base + position[found];
        }
    }
    return TL_OK;
}

enum { STARTS, STEPS, ENDS, PAIRED, ORPHAN_STARTS, ORPHAN_ENDS, FLOW_COUNTS };

/* Pair starts, steps and ends of one category and id (and pid, where the id is local to it) into arrows from
 * `source` to `target`, entries both. `counts`: FLOW_COUNTS numbers per category, to be added to. Groups are
 * found by a hash table, whose order and seed nothing depends on; `table_size` is a power of two > n.
 */
TL_API int tl_pair(uint64_t n, const uint8_t *phase, const uint32_t *ordinal, const uint32_t *category,
                   const uint8_t *id_kind, const int64_t *id_value, const uint32_t *pid, const int64_t *start,
                   uint64_t seed, uint32_t *table, uint64_t table_size, uint32_t *next, uint32_t *last,
                   uint32_t *members, uint32_t *room, int64_t *counts, uint32_t *source, uint32_t *target,
                   uint64_t *arrows, cancel_flag cancel)
{
    const sort_keys by_time = {start, NULL, ordinal};
    memset(table, 0xFF, table_size * sizeof *table);
    for (uint64_t i = 0; i < n; i++) {
        if (is_cancelled(cancel, i)) {
            return TL_CANCELLED;
        }
        uint64_t hash = ((uint64_t)id_value[i] ^ seed) * UINT64_C(0x9E3779B97F4A7C15);
        hash = (hash ^ hash >> 32 ^ category[i]) * UINT64_C(0xD6E8FEB86659FD93);
        uint64_t at = (hash ^ hash >> 32) & (table_size - 1);
        uint32_t head;
        while ((head = table[at]) != NO_ENTRY &&
               (id_value[head] != id_value[i] || category[head] != category[i] || id_kind[head] != id_kind[i] ||
                (id_kind[i] == ID_LOCAL && pid[head] != pid[i]))) {
            at = (at + 1) & (table_size - 1);
        }
        next[i] = last[i] = NO_ENTRY;
        if (head == NO_ENTRY) {
            table[at] = head = (uint32_t)i;
        } else {
            next[last[head]] = (uint32_t)i;
        }
        last[head] = (uint32_t)i;
    }
    *arrows = 0;
    for (uint64_t head = 0; head < n; head++) {
        if (is_cancelled(cancel, head)) {
            return TL_CANCELLED;
        }
        if (last[head] == NO_ENTRY) {
            continue; /* not the first of its group */
        }
        uint64_t size = 0;
        int64_t starts = 0, ends = 0;
        for (uint32_t i = (uint32_t)head; i != NO_ENTRY; i = next[i]) {
            if (is_cancelled(cancel, size)) {
                return TL_CANCELLED;
            }
            members[size++] = i;
            starts += phase[i] == 's';
            ends += phase[i] == 'f';
        }
        if (merge_sort(&by_time, members, room, size, cancel) != TL_OK) {
            return TL_CANCELLED;
        }
        uint32_t from = NO_ENTRY;
        for (uint64_t k = 0; k < size && from == NO_ENTRY; k++) {
            from = phase[members[k]] == 's' ? members[k] : NO_ENTRY;
        }
        for (uint64_t k = 0; k < size; k++) {
            if (is_cancelled(cancel, k)) {
                return TL_CANCELLED;
            }
            const uint32_t i = members[k];
            if (phase[i] != 's' && from != NO_ENTRY) {
                source[*arrows] = from;
                target[(*arrows)++] = i;
            }
            from = phase[i] == 'f' ? from : i;
        }
        int64_t *of = counts + FLOW_COUNTS * (uint64_t)category[head];
        ends += starts && !ends && size > (uint64_t)starts; /* it ends at its last step */
        of[STARTS] += starts;
        of[STEPS] += (int64_t)size - starts - ends;
        of[ENDS] += ends;
        of[PAIRED] += starts ? ends : 0;
        of[ORPHAN_STARTS] += ends ? 0 : starts;
        of[ORPHAN_ENDS] += starts ? 0 : ends;
    }
    return TL_OK;
}

/* -- promoted arguments --------------------------------------------------------------------------------- */

/* Put each value at the slot of its event; a later one replaces an earlier one. `present`: a bit per slot.
 * `least` and `greatest` are of the values that have a slot, where these are integers; else NULL.
 */
TL_API int tl_promote(uint64_t width, uint64_t n, const uint32_t *ordinal, const void *values,
                      const uint32_t *slot_of, void *dense, uint64_t *present, int64_t *least,
                      int64_t *greatest, cancel_flag cancel)
{
    for (uint64_t i = 0; i < n; i++) {
        if (is_cancelled(cancel, i)) {
            return TL_CANCELLED;
        }
        const uint32_t slot = slot_of[ordinal[i]];
        if (slot == NO_ENTRY) {
            continue;
        }
        present[slot / 64] |= UINT64_C(1) << slot % 64;
        if (width == 4) {
            ((uint32_t *)dense)[slot] = ((const uint32_t *)values)[i];
            continue;
        }
        const int64_t value = ((const int64_t *)values)[i]; /* or the bits of a double */
        ((int64_t *)dense)[slot] = value;
        if (least) {
            *least = value < *least ? value : *least;
            *greatest = value > *greatest ? value : *greatest;
        }
    }
    return TL_OK;
}

/* The slots of begin .. end that have a value, counted from `base`, and their values. */
TL_API int tl_compact(uint64_t width, uint64_t begin, uint64_t end, uint64_t base, const void *dense,
                      const uint64_t *present, uint32_t *slots, void *values, uint64_t *count,
                      cancel_flag cancel)
{
    uint64_t out = 0;
    for (uint64_t slot = begin, looked = 0; slot < end; looked++) {
        if (is_cancelled(cancel, looked)) {
            return TL_CANCELLED;
        }
        const uint64_t word = present[slot / 64] >> slot % 64;
        if (!word) {
            slot += 64 - slot % 64;
            continue;
        }
        slot += lowest_bit(word);
        if (slot >= end) {
            break;
        }
        slots[out] = (uint32_t)(slot - base);
        if (width == 4) {
            ((uint32_t *)values)[out] = ((const uint32_t *)dense)[slot];
        } else {
            ((uint64_t *)values)[out] = ((const uint64_t *)dense)[slot];
        }
        out++;
        slot++;
    }
    *count = out;
    return TL_OK;
}
