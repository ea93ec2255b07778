/** How long an environment takes: create to ready (the operator signed in), resume to ready. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { OperationBody } from '../e2e/api-client.ts'
import type { Tenant } from '../e2e/tenant.ts'
import { type Figure, quantile, seconds } from './figure.ts'

const POLL_MS = 10

/** Sends a call and waits until its operation has succeeded. @returns the operation @throws Error when it failed */
export const succeeded = async (
  tenant: Tenant,
  send: () => Promise<OperationBody>,
  pollMs: number,
): Promise<OperationBody> => {
  let operation = await send()
  while (operation.state !== 'succeeded') {
    if (operation.state === 'failed') throw new Error(`${operation.kind} failed: ${operation.error}`)
    await sleep(pollMs)
    operation = await tenant.world.api.expect<OperationBody>(200, 'GET', `/v1/operations/${operation.id}`, {
      headers: { 'x-service-organization-id': tenant.organizationId },
    })
  }
  return operation
}

/** Milliseconds from sending a call to seeing its operation succeeded. */
export const timed = async (tenant: Tenant, send: () => Promise<OperationBody>, pollMs = POLL_MS): Promise<number> => {
  const start = performance.now()
  await succeeded(tenant, send, pollMs)
  return performance.now() - start
}

const create = (tenant: Tenant, id: string): Promise<number> =>
  timed(tenant, async () => {
    const answer = await tenant.requestEnvironment(id)
    if (answer.status !== 202) throw new Error(`Create answered ${answer.status}: ${answer.text}`)
    return answer.body
  })

/** Creates one after another; leaves them running. */
export const createOneByOne = async (tenant: Tenant, count: number): Promise<Figure> => {
  const durations: number[] = []
  for (let i = 0; i < count; i++) durations.push(await create(tenant, `one-${i}`))
  return {
    name: `create → ready, ${count} one after another, p50 / p99`,
    value: `${seconds(quantile(durations, 0.5))} / ${seconds(quantile(durations, 0.99))}`,
    aim: 'p50 ≤ 0.7 s',
  }
}

/** Creates many at once, then deletes them. */
export const createAtOnce = async (tenant: Tenant, count: number): Promise<Figure> => {
  const ids = Array.from({ length: count }, (_, i) => `many-${i}`)
  const durations = await Promise.all(ids.map(id => create(tenant, id)))
  for (const id of ids) await tenant.run('delete', id)
  return {
    name: `create → ready, ${count} at once, slowest`,
    value: seconds(Math.max(...durations)),
    aim: 'all ≤ 6 s',
  }
}

/** Suspends and resumes existing environments, timing the resume. */
export const resume = async (tenant: Tenant, count: number): Promise<Figure> => {
  const durations: number[] = []
  for (let i = 0; i < count; i++) {
    const id = `one-${i}`
    await tenant.run('suspend', id)
    durations.push(
      await timed(tenant, () => tenant.world.api.expect<OperationBody>(202, 'POST', tenant.path(id, '/resume'))),
    )
  }
  return {
    name: `resume → ready, ${count} one after another, p50 / p99`,
    value: `${seconds(quantile(durations, 0.5))} / ${seconds(quantile(durations, 0.99))}`,
    aim: 'p50 ≤ 0.4 s',
  }
}
