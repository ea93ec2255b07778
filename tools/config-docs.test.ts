import assert from 'node:assert/strict'
import { z } from 'zod'
import { renderConfigDocs } from './config-docs.ts'

describe('renderConfigDocs', () => {
  it('tells the name, the default and the meaning of each variable', () => {
    const schema = z.object({
      SERVICE_A: z.string().default('x').describe('An a'),
      SERVICE_B: z.string().optional().describe('A b, or | nothing'),
      SERVICE_C: z.string().describe('A c'),
    })
    const text = renderConfigDocs([{ title: 'Box', intro: 'Read by the box.', schema }])
    assert.ok(text.includes('| `SERVICE_A` | `x` | An a |'))
    assert.ok(text.includes('| `SERVICE_B` |  | A b, or \\| nothing |'))
    assert.ok(text.includes('| `SERVICE_C` | required | A c |'))
  })

  it('refuses a variable that says nothing of itself', () => {
    const schema = z.object({ SERVICE_D: z.string() })
    assert.throws(() => renderConfigDocs([{ title: 'Box', intro: '', schema }]), /SERVICE_D has no description/)
  })
})
