import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { openReply, type SealContext, sealReply } from './seal-reply.ts'

const context: SealContext = {
  sealingKey: randomBytes(32),
  callersKey: 'order-66',
  scopeHash: randomBytes(32),
}
const body = Buffer.from('{"token":"svc_pat_secret"}')

describe('sealReply', () => {
  it('opens with what sealed it, and never seals twice alike', () => {
    const sealed = sealReply(body, context)
    assert.deepEqual(openReply(sealed, context), body)
    assert.notDeepEqual(sealReply(body, context), sealed)
    assert.ok(!sealed.includes('svc_pat_'))
  })

  it('opens with nothing else: key of ours, raw key of the caller, scope', () => {
    const sealed = sealReply(body, context)
    for (const change of [{ sealingKey: randomBytes(32) }, { callersKey: 'order-67' }, { scopeHash: randomBytes(32) }])
      assert.equal(openReply(sealed, { ...context, ...change }), undefined)
  })

  it('opens neither when a bit was changed nor when it was cut short', () => {
    const sealed = sealReply(body, context)
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      assert.equal(openReply(changed, context), undefined)
      assert.equal(openReply(sealed.subarray(0, at), context), undefined)
    }
  })
})
