/** Compacts etcd, as it is done every few minutes in earnest: versions of before can be read and watched no more. */
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

/** Whether a version can be read no more. */
export const isForgotten = async (base: string, revision: string): Promise<boolean> =>
  (await (await post(`${base}/v3/kv/range`, { key: KEY, revision })).text()).includes('has been compacted')

/** The JSON gateway of the etcd behind the API-only cluster, where SERVICE_TEST_ETCD_URL names it. */
export const historyOf = (): string | undefined => process.env['SERVICE_TEST_ETCD_URL']

/** Forgets everything but the newest version of each object. */
export const compactHistory = async (base: string): Promise<void> => {
  const { header } = await call(`${base}/v3/kv/range`, { key: KEY })
  await call(`${base}/v3/kv/compaction`, { revision: header.revision, physical: true })
}
