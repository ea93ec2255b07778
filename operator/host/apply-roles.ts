/** Changes to the roles of a running instance. Passwords go as verifiers; nothing is written that is so already. */
import type pg from 'pg'
import { matchesVerifier, scramVerifier } from '../../lib/credentials/scram-verifier.ts'
import type { CredentialSet } from '../../runtime/credentials/credentials.ts'
import type { SocketAddress } from '../../runtime/postgres/server-process.ts'
import { APP_ROLE, OPS_ROLE } from './database-roles.ts'
import { asSuperuser, type TlsAddress } from './superuser-session.ts'

/** What the tenant may open at once; ours come on top. */
export const limitConnections = async (client: pg.Client, limit: number): Promise<void> => {
  await client.query(`alter role ${APP_ROLE} connection limit ${limit}`)
}

/** The same, in a session of its own. */
export const applyConnectionLimit = (address: SocketAddress, limit: number): Promise<void> =>
  asSuperuser(address, client => limitConnections(client, limit))

/**
 * Makes both roles' passwords those of the credentials, whatever a tenant made of its own. `mustBeOurs` throws where that is not
 * our work any more: a process that slept may wake between any two statements.
 */
export const applyPasswords = (
  address: SocketAddress | TlsAddress,
  credentials: CredentialSet,
  mustBeOurs: () => void = () => undefined,
): Promise<void> =>
  asSuperuser(address, async client => {
    const { rows } = await client.query<{ rolname: string; rolpassword: string | null }>(
      'select rolname, rolpassword from pg_authid where rolname = any($1)',
      [[APP_ROLE, OPS_ROLE]],
    )
    const kept = new Map(rows.map(row => [row.rolname, row.rolpassword ?? '']))
    for (const [role, { password }] of [
      [APP_ROLE, credentials.app],
      [OPS_ROLE, credentials.ops],
    ] as const)
      if (!(await matchesVerifier(password, kept.get(role) ?? ''))) {
        const verifier = client.escapeLiteral(await scramVerifier(password))
        mustBeOurs()
        await client.query(`alter role ${role} password ${verifier}`)
      }
  })
