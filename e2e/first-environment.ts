/** The environment that a box makes at its first start. */
import assert from 'node:assert/strict'
import { FIRST_ENVIRONMENT, FIRST_ORGANIZATION, FIRST_PROJECT } from '../box/first-start.ts'
import { openSqlDirect } from '../testkit/open-sql.ts'
import type { EnvironmentBody } from './api-client.ts'
import type { BoxProcess } from './box-process.ts'

/** Its path. */
export const FIRST = `/v1/organizations/${FIRST_ORGANIZATION}/projects/${FIRST_PROJECT}/environments/${FIRST_ENVIRONMENT}`

/** @throws AssertionError, or whatever the sign-in meets, where it does not serve */
export const firstEnvironmentServes = async (box: BoxProcess): Promise<void> => {
  const api = box.api()
  assert.equal((await api.expect<EnvironmentBody>(200, 'GET', FIRST)).phase, 'ready')
  const { connection_uri } = await api.expect<{ connection_uri: string }>(200, 'GET', `${FIRST}/connection`)
  const session = await openSqlDirect(connection_uri)
  assert.deepEqual(await session.rows('select 1 as one'), [{ one: 1 }])
  await session.close()
}
