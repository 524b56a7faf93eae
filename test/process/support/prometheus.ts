import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse, stringify } from 'yaml'

import { PATIENCE_MS } from '../../support/patience.ts'
import { freePort } from '../../support/ports.ts'
import { until } from './client.ts'

const shipped = resolve(import.meta.dirname, '../../../deploy/prometheus')

interface Rules {
  readonly groups: readonly {
    readonly name: string
    /** Alerting rules and recording rules. */
    readonly rules: readonly Readonly<Record<string, unknown> & { alert?: string }>[]
  }[]
}

interface ScrapeConfiguration {
  readonly rule_files: readonly string[]
  readonly scrape_configs: readonly {
    readonly job_name: string
    readonly scheme?: string
    readonly tls_config?: Readonly<Record<string, string>>
    readonly static_configs: readonly {
      readonly targets: readonly string[]
      readonly labels: Readonly<Record<string, string>>
    }[]
  }[]
}

export interface Alert {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly summary: string
  readonly runbook: string
}

interface PrometheusOptions {
  readonly folder: string
  /** `host:port` of each target, by job of the shipped scrape configuration. */
  readonly targets: Readonly<Record<string, readonly string[]>>
  /** Files that `flotilla pki issue` wrote, and the CA. */
  readonly certificate: { readonly ca: string; readonly cert: string; readonly key: string }
}

/**
 * The reason why no Prometheus can run; null if one can. The environment variable PROMETHEUS names
 * the program.
 */
export function missingPrometheus(): string | null {
  try {
    execFileSync(program(), ['--version'], { stdio: 'ignore' })
    return null
  } catch {
    return 'is skipped: no program prometheus is on PATH, and PROMETHEUS names none'
  }
}

function program(): string {
  return process.env['PROMETHEUS'] ?? 'prometheus'
}

/** The slowest alert condition is a service without a host for ten minutes. */
const WAIT_MS = 9 * PATIENCE_MS

/** Interval of scrapes and of rule evaluation, s. */
const EVERY_S = 2

/** Names of the shipped alerts. */
export function shippedAlerts(): readonly string[] {
  const { groups } = parse(readFileSync(join(shipped, 'rules.yml'), 'utf8')) as Rules
  return groups.flatMap(({ rules }) => rules.flatMap(({ alert }) => alert ?? []))
}

/**
 * A real Prometheus with the shipped rules and the shipped scrape configuration. Two things differ:
 * the targets and files are those of the test, scraped every two seconds; and an alert fires as
 * soon as its expression is true, because the `for` key is removed so that no test has to wait.
 */
export class Prometheus {
  readonly #folder: string
  readonly #port: number
  readonly #child: ChildProcess

  private constructor(folder: string, port: number, child: ChildProcess) {
    this.#folder = folder
    this.#port = port
    this.#child = child
  }

  static async start({ folder, targets, certificate }: PrometheusOptions): Promise<Prometheus> {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'rules.yml'), stringify(rulesWithoutFor()))
    const config = scrapeConfiguration(targets, certificate)
    writeFileSync(join(folder, 'prometheus.yml'), stringify(config))
    const port = await freePort()
    const log = openSync(join(folder, 'prometheus.log'), 'a')
    const words = [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'tsdb')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]
    const child = spawn(program(), words, { stdio: ['ignore', log, log] })
    closeSync(log)
    const started = new Prometheus(folder, port, child)
    await until('Prometheus is ready', async () => {
      if (child.exitCode !== null) throw new Error(started.log)
      return (await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => null))?.ok === true
    })
    return started
  }

  get log(): string {
    return readFileSync(join(this.#folder, 'prometheus.log'), 'utf8')
  }

  /** Targets that answer scrapes, by job and address. */
  async healthyTargets(): Promise<readonly string[]> {
    const { activeTargets } = (await this.#get('targets')) as {
      activeTargets: { scrapePool: string; health: string; labels: { instance: string } }[]
    }
    return activeTargets
      .filter(({ health }) => health === 'up')
      .map(({ scrapePool, labels }) => `${scrapePool} ${labels.instance}`)
      .sort()
  }

  /** Rules that Prometheus could not evaluate, with the error. */
  async brokenRules(): Promise<readonly string[]> {
    const { groups } = (await this.#get('rules')) as {
      groups: { rules: { name: string; health: string; lastError?: string }[] }[]
    }
    return groups
      .flatMap(({ rules }) => rules)
      .filter(({ health }) => health === 'err')
      .map(({ name, lastError }) => `${name}: ${lastError}`)
  }

  async firing(): Promise<readonly Alert[]> {
    const { alerts } = (await this.#get('alerts')) as {
      alerts: {
        state: string
        labels: Record<string, string>
        annotations: Record<string, string>
      }[]
    }
    return alerts
      .filter(({ state }) => state === 'firing')
      .map(({ labels: { alertname = '', ...labels }, annotations }) => ({
        name: alertname,
        labels,
        summary: annotations['summary'] ?? '',
        runbook: annotations['runbook_url'] ?? '',
      }))
  }

  /** Resolves with the first firing alert with this name and these labels. */
  async fires(name: string, labels: Readonly<Record<string, string>> = {}): Promise<Alert> {
    return await until(
      `${name} fires`,
      async () => {
        const firing = await this.firing()
        return firing.find((alert) => alert.name === name && hasLabels(alert, labels)) ?? null
      },
      WAIT_MS,
    ).catch(async (error: unknown) => {
      throw new Error(`${String(error)}\n${JSON.stringify(await this.firing())}`)
    })
  }

  /** Resolves once no alert with this name and these labels fires. */
  async resolves(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    await until(
      `${name} resolves`,
      async () => {
        const firing = await this.firing()
        return !firing.some((alert) => alert.name === name && hasLabels(alert, labels))
      },
      WAIT_MS,
    )
  }

  /** Names of all alerts that have fired in the last hour. */
  async fired(): Promise<readonly string[]> {
    const query = 'max_over_time(ALERTS{alertstate="firing"}[1h])'
    const { result } = (await this.#get(`query?query=${encodeURIComponent(query)}`)) as {
      result: { metric: { alertname: string } }[]
    }
    return [...new Set(result.map(({ metric }) => metric.alertname))].sort()
  }

  /** Current values of an expression. */
  async values(query: string): Promise<readonly number[]> {
    const { result } = (await this.#get(`query?query=${encodeURIComponent(query)}`)) as {
      result: { value: [number, string] }[]
    }
    return result.map(({ value: [, text] }) => Number(text))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }

  async #get(path: string): Promise<unknown> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}/api/v1/${path}`)
    const { status, data, error } = (await answer.json()) as Record<string, unknown>
    if (status !== 'success') throw new Error(String(error))
    return data
  }
}

function hasLabels({ labels }: Alert, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value)
}

function rulesWithoutFor(): object {
  const { groups } = parse(readFileSync(join(shipped, 'rules.yml'), 'utf8')) as Rules
  return {
    groups: groups.map(({ rules, ...group }) => ({
      ...group,
      rules: rules.map(({ for: _for, ...rule }) => rule),
    })),
  }
}

function scrapeConfiguration(
  targets: PrometheusOptions['targets'],
  { ca, cert, key }: PrometheusOptions['certificate'],
): object {
  const text = readFileSync(join(shipped, 'scrape.yml'), 'utf8')
  const { scrape_configs: jobs, ...rest } = parse(text) as ScrapeConfiguration
  const names = jobs.map(({ job_name: name }) => name).sort()
  if (names.join() !== Object.keys(targets).sort().join()) {
    throw new Error(`the shipped scrape configuration has the jobs ${names.join(', ')}`)
  }
  const every = `${EVERY_S}s`
  return {
    ...rest,
    global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: every },
    scrape_configs: jobs.map(({ tls_config: tls, static_configs: [first], ...job }) => ({
      ...job,
      scrape_interval: every,
      ...(tls === undefined ? {} : { tls_config: { ca_file: ca, cert_file: cert, key_file: key } }),
      static_configs: [{ targets: targets[job.job_name], labels: first?.labels ?? {} }],
    })),
  }
}
