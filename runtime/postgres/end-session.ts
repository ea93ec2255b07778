import type pg from 'pg'

const FAREWELL_MS = 1000

/**
 * Ends a session, at the latest after a second: a server that is frozen, or a link that is severed, never answers the farewell.
 * Then the connection is cut. Never throws.
 */
export const endSession = async (client: pg.Client, deadlineMs = FAREWELL_MS): Promise<void> => {
  const cut = setTimeout(() => client.connection.stream.destroy(), deadlineMs)
  try {
    await client.end()
  } catch {
    // It is over either way.
  } finally {
    clearTimeout(cut)
  }
}
