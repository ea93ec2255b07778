/** Every metric that an alert of the chart asks for is one that the running programs show: a name with a slip never fires. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { type FakedControlPlane, startFakedControlPlane } from './faked-control-plane.ts'

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

const ALERTS = join(import.meta.dirname, '../../charts/svc-platform/files/alerts.yaml')

/** Names of metrics in an expression: what is neither a function, nor a word of the language, nor a label. */
const metricsIn = (expression: string): string[] =>
  [
    ...expression
      .replaceAll(/\{[^}]*\}|\[[^\]]*\]|"[^"]*"/g, ' ')
      .replaceAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ')
      .matchAll(/\b[a-z_:][a-z0-9_:]*\b(?!\s*\()/gi),
  ]
    .map(([name]) => name)
    .filter(name => !/^(and|or|unless|bool|offset|sum|max|min|avg|count|inf|nan)$/i.test(name))

describe('the alerts', function () {
  this.timeout(240_000)
  let plane: FakedControlPlane

  before(async function () {
    plane = await startFakedControlPlane(this, 1)
  })
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- skipped before it was made
  after(() => plane?.stop())

  it('ask only for metrics that an operator or an API server shows', async () => {
    const tenant = await plane.tenant()
    await tenant.createEnvironment('measured')
    const [operator] = plane.operators
    const [apiServer] = plane.apiServers
    const texts = await Promise.all(
      [operator!.metricsUrl, apiServer!.metricsUrl].map(async url => (await fetch(url)).text()),
    )
    const shown = new Set(
      texts
        .flatMap(text => [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)])
        .flatMap(([, name = '', type]) =>
          type === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
        ),
    )
    const { groups } = parse(readFileSync(ALERTS, 'utf8')) as Rules
    const asked = groups.flatMap(({ rules }) =>
      rules.flatMap(({ alert, expr }) => metricsIn(expr).map(name => ({ alert, name }))),
    )
    assert.ok(asked.length >= groups.flatMap(({ rules }) => rules).length, 'found hardly any metric')
    assert.deepEqual(
      asked.filter(({ name }) => !shown.has(name)),
      [],
    )
    await tenant.run('delete', 'measured')
  })
})
