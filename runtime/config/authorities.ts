import { readFileSync } from 'node:fs'
import { Agent, type AgentOptions } from 'node:https'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { ConfigError } from './parse-env.ts'

/**
 * Whose certificates to believe: those that Node does (NODE_EXTRA_CA_CERTS among them), and those of a file that a variable names.
 * @throws ConfigError when the file cannot be read, or holds none
 */
export const authorities = (variable: string, file: string | undefined): readonly string[] => {
  const usual = getCACertificates('default')
  if (file === undefined) return usual
  const refuse = (why: string, cause?: unknown): never => {
    throw new ConfigError(`Cannot use ${variable}: ${why}`, { cause })
  }
  try {
    const pem = readFileSync(file, 'utf8')
    return pem.includes('-----BEGIN CERTIFICATE-----') ? [...usual, pem] : refuse('there is no PEM certificate in it')
  } catch (error) {
    if (error instanceof ConfigError) throw error
    return refuse('it cannot be read', error)
  }
}

/**
 * What connections out are secured by, made at its first use and kept: each connection would read all authorities anew, which takes
 * tens of milliseconds, in which the process does nothing else. undefined: the authorities of this machine.
 */
export const outgoingContext = (trusted: readonly string[] | undefined): (() => SecureContext) => {
  let context: SecureContext | undefined
  return () => (context ??= createSecureContext({ ...(trusted && { ca: [...trusted] }), minVersion: 'TLSv1.2' }))
}

/** For calls over https, with such a context. */
export const outgoingAgent = (trusted: readonly string[] | undefined, options: AgentOptions): (() => Agent) => {
  const context = outgoingContext(trusted)
  let agent: Agent | undefined
  return () => (agent ??= new Agent({ ...options, secureContext: context(), rejectUnauthorized: true }))
}
