// helm test: a preview is made, becomes ready and is deleted, through the cluster's API alone; and the API server is ready.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const { TEST_NAMESPACE: namespace, TEST_API_URL: api, TEST_TIMEOUT_SECONDS: timeout } = process.env
const account = '/var/run/secrets/kubernetes.io/serviceaccount'
const host = process.env.KUBERNETES_SERVICE_HOST
const cluster = `https://${host.includes(':') ? `[${host}]` : host}:${process.env.KUBERNETES_SERVICE_PORT}`
const path = `/apis/svc.internal/v1alpha1/namespaces/${namespace}/environments`
const name = 'helm.test.preview'
const until = Date.now() + Number(timeout) * 1000

const call = async (method, where, body) => {
  const response = await fetch(cluster + where, {
    method,
    headers: {
      authorization: `Bearer ${readFileSync(`${account}/token`, 'utf8')}`,
      'content-type': 'application/json',
    },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })
  return { status: response.status, body: await response.json() }
}

/** Asks again and again; what was seen last is said when the time is over. */
const waitFor = async (what, look) => {
  const began = Date.now()
  for (let seen; ; await sleep(250)) {
    const { done, saw } = await look()
    if (done) return console.log(`${what} after ${((Date.now() - began) / 1000).toFixed(1)} s`)
    if (saw !== seen) console.log(`waiting: ${(seen = saw)}`)
    if (Date.now() > until) throw new Error(`Not ${what} in time: ${saw}`)
  }
}

await waitFor('the API server is ready', async () => {
  const response = await fetch(`${api}/readyz`, { signal: AbortSignal.timeout(10_000) }).catch(error => error)
  return { done: response.ok === true, saw: `readyz answers ${response.status ?? response.message}` }
})
const made = await call('POST', path, {
  apiVersion: 'svc.internal/v1alpha1',
  kind: 'Environment',
  metadata: { name, namespace },
  spec: { organizationId: 'helm', projectId: 'test', environmentId: 'preview', kind: 'preview', ttlHours: 1 },
})
if (made.status !== 201) throw new Error(`The cluster did not take the preview: ${JSON.stringify(made.body)}`)
await waitFor('the preview is ready', async () => {
  const { status } = (await call('GET', `${path}/${name}`)).body
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return {
    done: ready?.status === 'True' && status.phase === 'ready',
    saw: `${status?.phase}, ${ready?.reason}: ${ready?.message}`,
  }
})
await call('DELETE', `${path}/${name}`)
await waitFor('the preview is gone', async () => {
  const { status, body } = await call('GET', `${path}/${name}`)
  return { done: status === 404, saw: body.status?.phase ?? `the cluster answers ${status}` }
})
