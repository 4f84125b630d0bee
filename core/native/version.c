/* By what the loader knows a library that belongs to its Python files. */
#include "native.h"

/* sizeof of every structure of native.h that structs.py describes, in its order; the last ends the list. */
static const uint32_t STRUCT_SIZES[] = {sizeof(struct tl_gap), sizeof(struct tl_scan), sizeof(struct tl_inflate), 0};

uint32_t tl_version(void)
{
    return TL_VERSION;
}

uint32_t tl_struct_sizes(uint32_t *sizes, uint32_t capacity)
{
    const uint32_t count = sizeof STRUCT_SIZES / sizeof *STRUCT_SIZES - 1;
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        sizes[i] = STRUCT_SIZES[i];
    }
    return count;
}
