// Asks the worker, one question at a time. Of the questions that wait, only the newest is asked.

import type { Answer, Question } from "./answer.js";
import type { Result, Task } from "./worker.js";

export interface Listener {
  onBusy(): void;
  onAnswer(answer: Answer, question: Question): void;
  onFailure(message: string): void;
}

export class Engine {
  private worker: Worker | undefined;
  private asked: { id: number; question: Question } | undefined;
  private waiting: Question | undefined;
  private last = 0;

  constructor(private readonly listener: Listener) {}

  ask(question: Question): void {
    if (this.asked) {
      this.waiting = question;
      return;
    }
    this.asked = { id: ++this.last, question };
    this.listener.onBusy();
    const task: Task = { id: this.last, question: JSON.stringify(question) };
    this.started().postMessage(task);
  }

  private started(): Worker {
    if (!this.worker) {
      this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
      this.worker.addEventListener("message", ({ data }: MessageEvent<Result>) => this.finish(data));
      this.worker.addEventListener("error", (event) => {
        this.finish({ id: this.last, failure: event.message || "it could not be loaded" });
      });
    }
    return this.worker;
  }

  private finish(result: Result): void {
    const asked = this.asked;
    if (!asked || asked.id !== result.id) return;
    this.asked = undefined;
    if ("answer" in result) {
      this.listener.onAnswer(JSON.parse(result.answer) as Answer, asked.question);
    } else {
      // A module that trapped has a memory in an unknown state.
      this.worker?.terminate();
      this.worker = undefined;
      this.listener.onFailure(`the engine stopped (${result.failure}): change an input to start it again, reload the page, or use the command line`);
    }
    const next = this.waiting;
    this.waiting = undefined;
    if (next) this.ask(next);
  }
}
