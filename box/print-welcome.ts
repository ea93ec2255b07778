import { LOCAL_OPERATOR } from './local-operator.ts'

/** What the welcome says. */
export interface Welcome {
  readonly baseUrl: string
  readonly metricsUrl: string
  /** Only where this start made it. */
  readonly token: string | undefined
  /** With which the first administrator is made; undefined: there is one. Shown at every start until then. */
  readonly setupToken: string | undefined
  readonly credentialsFile: string
  /** Whether the token in it was revoked. */
  readonly revoked: boolean
  readonly connectionUri: string | undefined
  readonly caCertificateFile: string | undefined
  readonly logFile: string | undefined
  /** How to stop it, e.g. "Ctrl-C". */
  readonly stop: string
}

/** A URI that psql, and every client built on libpq, can use as it is: without the file it would look into ~/.postgresql. */
const withRootCertificate = (uri: string, file: string | undefined): string =>
  file === undefined ? uri : `${uri}&sslrootcert=${file.split('/').map(encodeURIComponent).join('/')}`

/** Says where everything is, at once: whoever waits for its first word has it all. A new first token is shown here, once. */
export const printWelcome = (print: (lines: string) => void, welcome: Welcome): void => {
  const lines = ['Ready.', '']
  const row = (name: string, value: string): void => void lines.push(`  ${name.padEnd(14)}${value}`)
  row('API', welcome.baseUrl)
  row('Reference', `${welcome.baseUrl}/docs`)
  row('Metrics', welcome.metricsUrl)
  if (welcome.token !== undefined) row('Token', `${welcome.token}   (shown once; scripts find it in the file below)`)
  if (welcome.setupToken !== undefined)
    row('Setup token', `${welcome.setupToken}   (makes the first administrator: POST /v1/auth/builtin/setup)`)
  row('Credentials', welcome.credentialsFile)
  if (welcome.revoked)
    row(
      '',
      `its token was revoked; delete the file and start again for a new one, or make user EMAIL=${LOCAL_OPERATOR}`,
    )
  if (welcome.connectionUri !== undefined)
    row('Database', `psql "${withRootCertificate(welcome.connectionUri, welcome.caCertificateFile)}"`)
  if (welcome.logFile !== undefined) row('Log', welcome.logFile)
  row('Stop', welcome.stop)
  print([...lines, ''].join('\n'))
}
