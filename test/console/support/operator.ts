import type { FileChooser, Locator, Page } from 'playwright-core'

import { isFirefox } from './console-browser.ts'

/** Number of clicks and keys that a job takes. */
export interface Effort {
  readonly clicks: number
  readonly keys: number
}

/** A person who works on a page; counts the clicks and keys of the job. */
export class Operator {
  readonly page: Page
  #clicks = 0
  #keys = 0

  constructor(page: Page) {
    this.page = page
  }

  get effort(): Effort {
    return { clicks: this.#clicks, keys: this.#keys }
  }

  async click(target: Locator): Promise<void> {
    this.#clicks += 1
    await target.click()
  }

  /** Clicks a field and types into it. */
  async fill(field: Locator, text: string): Promise<void> {
    this.#clicks += 1
    await field.click()
    await this.type(text)
  }

  /** Types into the element with the focus. */
  async type(text: string): Promise<void> {
    this.#keys += text.length
    await this.page.keyboard.type(text)
  }

  /** Presses one key, or keys held together such as `Control+k`. */
  async press(keys: string): Promise<void> {
    this.#keys += keys.split('+').length
    await this.page.keyboard.press(keys)
  }

  /** Pastes a text from the clipboard into a field, which counts as two keys. */
  async paste(field: Locator, text: string): Promise<void> {
    this.#keys += 2
    await field.fill(text)
  }

  /** Opens a list of choices and selects one, which counts as two clicks. */
  async select(list: Locator, value: string): Promise<void> {
    this.#clicks += 2
    await list.selectOption(value)
  }

  /**
   * Chooses a file in the browser's dialog, which counts as a click on the field and two in the
   * dialog.
   */
  async chooseFile(field: Locator, file: Parameters<FileChooser['setFiles']>[0]): Promise<void> {
    this.#clicks += 3
    // Firefox reports no file dialog to WebDriver BiDi.
    if (isFirefox) return await field.setInputFiles(file)
    const [chooser] = await Promise.all([this.page.waitForEvent('filechooser'), field.click()])
    await chooser.setFiles(file)
  }
}
