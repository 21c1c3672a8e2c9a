/** The number of permits of the semaphore, the same for all contestants. */
export const permits = 4;
