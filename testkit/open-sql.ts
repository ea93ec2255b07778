import pg from 'pg'

/** A session in an environment's database. */
export interface SqlSession {
  rows<Row extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>
  close(): Promise<void>
}

/** Opens a session for a `connection_uri`, proving the server by `ca_certificate`; how depends on where the environment runs. */
export type OpenSql = (connectionUri: string, caCertificate?: string) => Promise<SqlSession>

/** Connects straight to the host and port of the URI: right where this process reaches them. */
export const openSqlDirect: OpenSql = connectionUri => openSession({ connectionString: connectionUri })

/** Connects as told. */
export const openSession = async (how: pg.ClientConfig): Promise<SqlSession> => {
  const client = new pg.Client({
    ...how,
    connectionTimeoutMillis: 15_000,
    query_timeout: 20_000,
    application_name: 'e2e',
  })
  // A server that goes away ends the session; the next query says so.
  client.on('error', () => undefined)
  await client.connect()
  return {
    rows: async <Row extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]) =>
      (await client.query<Row>(sql, values === undefined ? undefined : [...values])).rows,
    close: () => client.end(),
  }
}
