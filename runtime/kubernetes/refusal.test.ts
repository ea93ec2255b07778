import assert from 'node:assert/strict'
import { refusalIn } from './refusal.ts'

/** Messages as API servers of 1.34 send them. */
const ROWS: readonly (readonly [code: number, message: string, by: string | undefined, words?: string])[] = [
  [
    500,
    'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://a.svc:443/?timeout=2s": dial tcp 10.0.0.1:443: connect: connection refused',
    'failed calling webhook "a.example.com"',
  ],
  [
    403,
    'admission webhook "a.example.com" denied the request: no StatefulSets here',
    'denied by webhook "a.example.com"',
    'no StatefulSets here',
  ],
  [
    400,
    'admission webhook "a.example.com" denied the request without explanation',
    'denied by webhook "a.example.com"',
  ],
  [
    422,
    `services "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no Services here`,
    'denied by policy "p"',
    'no Services here',
  ],
  [
    403,
    'persistentvolumeclaims "x" is forbidden: exceeded quota: small, requested: requests.storage=5Gi, used: requests.storage=0, limited: requests.storage=1Gi',
    'over quota "small"',
    'requested: requests.storage=5Gi, used: requests.storage=0, limited: requests.storage=1Gi',
  ],
  [
    403,
    'pods "x" is forbidden: failed quota: small: must specify limits.cpu for: postgres',
    'denied by quota "small"',
    'must specify limits.cpu for: postgres',
  ],
  [
    403,
    'persistentvolumeclaims "x" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 5Gi',
    'denied by admission',
    'maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 5Gi',
  ],
  [403, 'services "x" is forbidden: User "a" cannot patch resource "services" in API group ""', undefined],
  [
    403,
    'services "x" is forbidden: unable to create new content in namespace n because it is being terminated',
    undefined,
  ],
  [409, 'Operation cannot be fulfilled on services "x": the object has been modified', undefined],
  [503, 'the server is currently unable to handle the request', undefined],
]

describe('who refused a write', () => {
  for (const [code, message, by, words] of ROWS)
    it(`${by ?? 'nobody'}: ${message.slice(0, 80)}`, () =>
      assert.deepEqual(refusalIn(code, message), by === undefined ? undefined : { by, ...(words && { words }) }))

  it('keeps a long speech short', () => {
    const { words } = refusalIn(403, `admission webhook "a" denied the request: ${'x'.repeat(5_000)}`)!
    assert.equal(words?.length, 300)
  })
})
