import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  assertSocketFits,
  COMMON_SETTINGS,
  CONTROL_CONNECTIONS,
  placedSettings,
  renderHba,
  renderIdent,
  renderSettings,
  sizedSettings,
} from './settings.ts'

const MIB = 2 ** 20
const place = {
  listen: '',
  port: 20_000,
  socketFolder: '/s',
  hbaFile: '/h',
  identFile: '/i',
  logFolder: '/l',
  name: 'n',
}
const mib = (value: unknown): number => {
  const [, digits] = /^(\d+)MB$/.exec(String(value)) ?? []
  return Number(digits)
}

describe('settings of a server', () => {
  it('fit into the memory and the disk that they are for', () => {
    fc.assert(
      fc.property(
        fc.record({
          memoryBytes: fc.integer({ min: 64, max: 262_144 }).map(size => size * MIB),
          storageBytes: fc.integer({ min: 256, max: 4_194_304 }).map(size => size * MIB),
          cpus: fc.integer({ min: 1, max: 128 }),
          maxConnections: fc.integer({ min: 5, max: 5000 }),
        }),
        figures => {
          const settings = sizedSettings(figures)
          const memory = figures.memoryBytes / MIB
          assert.ok(mib(settings['shared_buffers']) <= memory / 4 || mib(settings['shared_buffers']) === 16)
          assert.ok(mib(settings['work_mem']) >= 1 && mib(settings['work_mem']) <= 64)
          assert.ok(mib(settings['max_wal_size']) <= Math.max(64, figures.storageBytes / MIB / 8))
          assert.ok(mib(settings['max_wal_size']) >= 2 * mib(settings['min_wal_size']))
          assert.ok(mib(settings['temp_file_limit']) <= Math.max(64, figures.storageBytes / MIB / 4))
          assert.equal(settings['max_connections'], figures.maxConnections + CONTROL_CONNECTIONS)
          assert.ok(Number(settings['superuser_reserved_connections']) < CONTROL_CONNECTIONS)
        },
      ),
    )
  })

  it('are quoted so that no value ends early or begins another line', () => {
    assert.equal(
      renderSettings({ cluster_name: `it's\\x`, fsync: true, jit: false, port: 1 }).split('\n').slice(1).join('\n'),
      `cluster_name = 'it''s\\\\x'\nfsync = on\njit = off\nport = 1\n`,
    )
    for (const bad of ['a\nfsync = off', 'a\0', 'a\r'])
      assert.throws(() => renderSettings({ cluster_name: bad }), /line break/)
  })

  it('of later parts win', () => {
    const text = renderSettings(COMMON_SETTINGS, { archive_mode: 'off' })
    assert.deepEqual(text.match(/^archive_mode = .*$/gm), [`archive_mode = 'off'`])
  })

  it('keep names printable and short, and sockets within what the system takes', () => {
    assert.equal(placedSettings({ ...place, name: `ü${'x'.repeat(80)}` })['cluster_name'], `?${'x'.repeat(62)}`)
    assertSocketFits('x'.repeat(107 - '/.s.PGSQL.20000'.length), 20_000)
    assert.throws(() => assertSocketFits('x'.repeat(108 - '/.s.PGSQL.20000'.length), 20_000), /at most 107/)
    assert.throws(() => assertSocketFits('ü'.repeat(47), 20_000), /at most 107/)
  })

  it('let in nobody but the superuser through the socket and who is listed', () => {
    assert.equal(
      renderHba([{ type: 'host', database: 'app', role: 'app', from: '127.0.0.0/8' }]),
      'local all postgres peer map=svc\nlocal replication postgres peer map=svc\nhost app app 127.0.0.0/8 scram-sha-256\n',
    )
    assert.equal(renderIdent('some one'), 'svc "some one" postgres\n')
    assert.throws(() => renderIdent('a"b'), /cannot be written/)
  })
})
