/** The service had closed a reused connection when the request was sent. */
export class StaleConnection extends Error {}
