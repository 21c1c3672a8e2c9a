/** The permits of the semaphore that all contestants share. */
export const permits = 4;
