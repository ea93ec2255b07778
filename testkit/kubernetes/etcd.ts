/** What is done to the etcd behind the API-only cluster: by its JSON gateway, where SERVICE_TEST_ETCD_URL names it. */
import assert from 'node:assert/strict'

const post = (url: string, body: object): Promise<Response> =>
  fetch(url, { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(10_000) })

const call = async (url: string, body: object): Promise<{ readonly header: { readonly revision: string } }> => {
  const answer = await post(url, body)
  const text = await answer.text()
  assert.equal(answer.status, 200, `${url}: ${text}`)
  return JSON.parse(text) as { header: { revision: string } }
}

/** Of no object: every key has the same history. */
const KEY = Buffer.from('/registry/health').toString('base64')

/** Where it is; undefined where nobody says. */
export const etcdUrl = (): string | undefined => process.env['SERVICE_TEST_ETCD_URL'] || undefined

/** Whether a version can be read no more. */
export const isForgotten = async (base: string, revision: string): Promise<boolean> =>
  (await (await post(`${base}/v3/kv/range`, { key: KEY, revision })).text()).includes('has been compacted')

/** Forgets everything but the newest version of each object, as it is done every few minutes in earnest. */
export const compactHistory = async (base: string): Promise<void> => {
  const { header } = await call(`${base}/v3/kv/range`, { key: KEY })
  await call(`${base}/v3/kv/compaction`, { revision: header.revision, physical: true })
}

/** From now on it takes nothing in, as one whose space is used up, until what this answers is called. */
export const useUpSpace = async (base: string): Promise<() => Promise<void>> => {
  const alarm = (action: string): Promise<unknown> =>
    call(`${base}/v3/maintenance/alarm`, { action, memberID: '0', alarm: 'NOSPACE' })
  await alarm('ACTIVATE')
  return async () => {
    await alarm('DEACTIVATE')
  }
}
