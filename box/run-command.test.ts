import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { MigrationError } from '../runtime/postgres/migrate.ts'
import { BoxError } from './box-error.ts'
import { errorLine } from './run-command.ts'

describe('errorLine', () => {
  it('tells what was foreseen in one line', () => {
    assert.equal(errorLine(new BoxError('Stop it first')), 'Stop it first')
    assert.equal(errorLine(new MigrationError('newer', 'A newer\n  version wrote it')), 'A newer version wrote it')
  })

  it('tells what the system refused without our stack', () => {
    let refused: unknown
    try {
      mkdirSync('/dev/null/svc')
    } catch (error) {
      refused = error
    }
    assert.match(errorLine(refused), /^E[A-Z]+: .*\/dev\/null\/svc'$/)
  })

  it('keeps the stack of what nobody expected', () => {
    assert.match(errorLine(new TypeError('oops')), /^Unexpected: TypeError: oops\n +at /)
  })
})
